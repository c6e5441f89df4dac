"""Training as four stages.

A network of 24 layers is trained on four GPUs. What does it cost to divide it into one stage for each GPU?

Runtimes of pipelines execute contiguous stages: each GPU runs consecutive layers, forward and backward. A placement
without this rule may scatter layers over the GPUs, which could balance their loads better. Two A100s have an NVLink,
two A30s have less than half of their speed, and PCIe joins all of them. Memory is scarce, because a stage keeps the
activations of several microbatches.
"""

from typing import Any

import placeopt as po

# %%
# Each layer has attention and a feed-forward network. The activations of a layer take 34 bytes for each element of the
# hidden state (Korthikanti et al. 2022, arXiv:2205.05198). Parameters take 16 bytes in training with Adam. With `1f1b`,
# the first of four stages keeps the activations of four microbatches, and the last one those of a single microbatch.
hidden, length, batch = 4096, 2048, 2
tokens = length * batch
sizes = {"attention": (4 * hidden**2, 4 * length * tokens * hidden, 13), "ffn": (8 * hidden**2, 0, 21)}
tasks: dict[str, dict[str, Any]] = {}
last: list[str] = []
for layer in range(24):
    for part, (parameters, scores, kept) in sizes.items():
        tasks[f"{layer}.{part}"] = {
            "flops": 2 * parameters * tokens + scores, "output": 2 * tokens * hidden, "gradient": 2 * parameters,
            "memory": {"resident": 16 * parameters, "output": kept * tokens * hidden}, "after": last,
        }  # fmt: skip
        last = [f"{layer}.{part}"]
for name, task in reversed(list(tasks.items())):
    tasks[f"{name}.backward"] = {
        "flops": 2 * task["flops"], "output": 2 * tokens * hidden, "memory": {"output": 0},
        "after": list(dict.fromkeys([*last, name])), "backward_of": name,
    }  # fmt: skip
    last = [f"{name}.backward"]
a30 = {"memory": "24 GiB", "speed": {"bf16": "165 TFLOP/s"}, "efficiency": 0.5}
document: dict[str, Any] = {
    "placeopt": 1, "name": "four-stages", "objective": "period", "precision": "bf16", "resolution": "1 us",
    "devices": {"a100-": {"like": "a100-40gb", "count": 2}, "a30-": {**a30, "count": 2}},
    "links": {"default": {"like": "pcie-4-x16"}, "overrides": [{"between": ["a100-", "a100-"], "like": "nvlink-3"}]},
    "tasks": tasks,
}  # fmt: skip
problem = po.compile({**document, "pipeline": {"stages": "contiguous", "in_flight": "1f1b"}})
result = po.solve(problem, "chains", workers=1)
assert result.schedule is not None
for stage in po.stage_uses(problem, result.schedule):
    layers, load, memory = stage.tasks // 4, stage.load / 1000, stage.memory / 2**30
    print(f"{stage.devices[0]:6}  {layers} layers, load {load:.1f} ms, {memory:4.1f} GiB, {stage.kept} under way")
period = float(result.objective or 0) / 1000
print(f"period {period:.1f} ms, {result.termination.value}")

# %%
# The layers form a chain, so that `chains` proves the best division. An A100 cannot come first, because eight layers
# with the activations of four microbatches do not fit. The A100s are neighbours and use their NVLink.
#
# Without the rule for stages, no period is below the work of all tasks divided among all GPUs.
free = po.compile({**document, "pipeline": {}})
bound = max(float(each.value) for each in po.bounds(free)) / 1000
print(f"four stages: {period:.1f} ms; any placement: at least {bound:.1f} ms; cost at most {period / bound - 1:.1%}")

# %%
# Four stages cost less than 3%: runtimes need no scattered placement here.
#
# ![Three periods of the steady state](../images/examples/four_stages.png)
result.plot("gantt", "four_stages.png")
