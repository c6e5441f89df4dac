"""A language model on 24 unlike GPUs.

Which GPUs should serve Llama 70B, which layers should each of them hold, and what is left when one fails?

There are four A100, eight L4 and twelve T4, one in each machine, with links of 10 Gbps. No GPU can hold the model: with
two bytes for each weight, it needs 137 GB. Tokens pass from node to node until they have passed all 80 layers.
"""

import placeopt as po

document = {
    "placeopt": 1,
    "name": "llama-70b",
    "devices": {
        "a100": {"like": "a100-40gb", "count": 4, "price": 3.67},
        "l4": {"like": "l4", "count": 8, "price": 0.80},
        "t4": {"like": "t4", "count": 12, "price": 0.53},
    },
    "links": {"default": {"bandwidth": "10 Gbps"}},
    "serving": {
        "layers": 80,
        "weights": "1712 MB",
        "cache": "4 KiB",
        "flops": "1712 MFLOP",
        "activation": "16 KiB",
        "reserve": "1 GiB",
    },
}
problem = po.load_serving(document)
result = po.solve_serving(problem, time_limit=20, gap_limit=0.03)
assert result.plan is not None
assert result.gap is not None
print(f"more than {result.rate // 10**9},000 tokens/s, at most {result.gap * 100:.0f}% below what is possible")

# %%
# Each node is a bar over the layers that it holds, as high as the tokens that it can pass in a second. Every layer has
# nodes that pass the rate together: two A100 with many layers, or more of the smaller GPUs with few layers. The gap is
# proved for these rates of nodes: no plan passes more than the dashed line. The rates are computed for each node alone,
# which is [optimistic for chains](../serving.md#rates-of-nodes); measured rates are better.
#
# ![Bars of 24 nodes over 80 layers, as high as their rates](../images/examples/serving.png)
result.plot("serving.png")

# %%
# When an A100 fails, the others could load all layers again. `po.replace_serving` also looks for plans that load few
# layers, which takes seconds and not minutes.
lost = problem.part([n for n, name in enumerate(problem.node_names) if name != "a100-3"])
plans, after = po.replace_serving(lost, problem, result.plan, time_limit=20)
for share in (0.45, 0.75, 0.8):
    enough = next(plan for plan in plans if plan.plan.rate >= share * result.rate)
    loaded = "no" if not enough.loaded else "few" if enough.loaded < 80 else "many"
    print(f"{share:.0%} of the rate: {loaded} layers to load")

# %%
# How much of this is needed for 6,000 tokens per second? `po.cheapest_serving` chooses among the nodes, by the price of
# an hour, and proves that no cheaper choice is enough.
cheapest = po.cheapest_serving(problem, 6_000 * 10**6, time_limit=30)
assert cheapest.price is not None
assert cheapest.result.plan is not None
used = cheapest.result.plan.end > cheapest.result.plan.begin
names = [problem.kind_names[kind] for kind in cheapest.result.problem.kind[used]]
print(f"{cheapest.price / 10**6:.2f} an hour, at least {cheapest.bound / 10**6:.2f}:", end=" ")
print(", ".join(f"{names.count(kind)} {kind}" for kind in problem.kind_names))

# %%
# [Serving a language model](../serving.md) explains the keys, the plan, and how the bound is proved.
