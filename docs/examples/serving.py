"""A language model on 24 unlike GPUs.

Which GPUs should serve Llama 70B, which layers should each of them hold, and what is left when one fails?

There are four A100, eight L4 and twelve T4, one in each machine, with links of 10 Gbps. No GPU can hold the model: with
two bytes for each weight, it needs 137 GB.
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
result = po.solve_serving(problem, time_limit=8)
assert result.plan is not None
print(f"more than {result.rate // (6 * 10**8) * 600} tokens/s")

# %%
# Each node is a bar over the layers that it holds, as high as the tokens that it can pass in a second. Every layer has
# nodes that pass the rate together: an A100 with six layers, an L4 with four, or two T4 with four. It is proved that no
# plan passes more than the dashed line.
#
# ![Bars of 24 nodes over 80 layers, as high as what they can pass](../images/examples/serving.png)
result.plot("serving.png")

# %%
# When an A100 fails, the others could load all layers again. `po.replace_serving` also looks for plans that load few
# layers, which takes seconds and not minutes.
lost = problem.part([n for n, name in enumerate(problem.node_names) if name != "a100-3"])
plans, after = po.replace_serving(lost, problem, result.plan, time_limit=6)
few = plans[0]
assert few.loaded < 20
print(f"fewer than 20 layers to load: more than {few.plan.rate * 2 // result.rate * 50}% of the rate")

# %%
# How much of this is needed for 800 tokens per second? `po.cheapest_serving` chooses among the nodes, by the price of
# an hour, and proves what is needed at least.
cheapest = po.cheapest_serving(problem, 800 * 10**6, time_limit=12)
assert cheapest.price is not None
most, least = -(-cheapest.price // 10**6), cheapest.bound // 10**6
print(f"less than {most} an hour, and at least {least}; all nodes cost {4 * 3.67 + 8 * 0.80 + 12 * 0.53:.2f}")

# %%
# [Serving a language model](../serving.md) explains the keys, the plan, and how the bound is proved.
