"""Training as four stages.

A network of 24 layers is trained on four GPUs. What does it cost to divide it into one stage for each GPU?

Runtimes of pipelines execute contiguous stages: each GPU runs consecutive layers, forward and backward. A placement
without this rule may scatter layers over the GPUs, which could balance their loads better. Two A100s have an NVLink,
two A30s have less than half of their speed, and PCIe joins all of them. Memory is scarce, because a stage keeps the
activations of several microbatches.
"""

from itertools import permutations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

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
result = po.solve(problem, "ideals", workers=1)
assert result.schedule is not None
print(f"ideals: period {float(result.objective or 0) / 1000:.1f} ms, gap {result.gap:.1%}")

# %%
# The dynamic program counts all links alike where they differ, and the gap states what this may cost. Therefore, the
# next lines try its stages in all orders.
parts = np.bincount(result.schedule.device) // 2
plans = []
for order in permutations(range(4)):
    ahead = np.repeat(order, parts[list(order)])
    device = np.concatenate((ahead, ahead[::-1]))
    plans.append(po.retime(problem, po.Schedule(device, np.zeros_like(device))))
best = min(filter(lambda plan: po.verify(problem, plan).feasible, plans), key=lambda plan: po.evaluate(problem, plan))
uses = po.device_uses(problem, best)
stages = [uses[d] for d in dict.fromkeys(best.device.tolist())]
for use in stages:
    print(f"{use.name}: {use.tasks // 4} layers, load {use.busy / 1000:.1f} ms, {use.memory / 2**30:.1f} GiB")

# %%
# Without the rule for stages, no period is below the work of all tasks divided among all GPUs.
bound = max(float(each.value) for each in po.bounds(po.compile({**document, "pipeline": {}}))) / 1000
period = float(po.evaluate(problem, best)[0]) / 1000
print(f"four stages: {period:.1f} ms; any placement: at least {bound:.1f} ms; cost at most {period / bound - 1:.1%}")

# %%
# Four stages cost less than 3%: runtimes need no scattered placement here. The A100s are neighbours and use their
# NVLink. An A100 cannot come first, because eight layers with the activations of four microbatches do not fit.
#
# ![Load and memory of the four stages](../images/examples/four_stages.png)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
names = [f"{k + 1}: {use.name}" for k, use in enumerate(stages)]
left.bar(names, [use.busy / 1000 for use in stages], color="#0072b2", width=0.6)
left.axhline(bound, color="#b3123d", linestyle="--", label="bound of any placement")
right.bar(names, [use.capacity / 2**30 for use in stages if use.capacity], color="#dddddd", width=0.6, label="capacity")
right.bar(names, [use.memory / 2**30 for use in stages], color="#e69f00", width=0.6, label="used")
for axes, title in ((left, "Load in each period (ms)"), (right, "Memory (GiB)")):
    axes.set_title(title, loc="left", weight="bold")
    axes.margins(y=0.25)
    axes.legend(frameon=False, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("four_stages.png", dpi=130)
