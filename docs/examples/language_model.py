"""A language model on three unlike GPUs.

Two desktops and a laptop serve a language model together. How many layers should each of them run?

The model is Llama 3 8B in bf16. Each machine runs consecutive layers for one group of sequences, while the others serve
other groups. The throughput is one token of a group per period, which is the load of the busiest machine.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import placeopt as po

# %%
# The import computes work, memory traffic and memory of each layer from `config.json`. With the objective `period`,
# stages are contiguous, and each machine needs the KV caches of all groups under way.
config = {
    "model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16",
    "max_position_embeddings": 8192, "tie_word_embeddings": False,
}  # fmt: skip
machines = {
    "devices": {name: {"like": name} for name in ("rtx-4090", "rtx-3090", "m1-max")},
    "links": {"default": {"like": "ethernet-10g"}},
}
with TemporaryDirectory() as folder:
    file = Path(folder) / "config.json"
    file.write_text(json.dumps(config))
    model = po.import_file(file, options=po.ImportOptions("llama-8b", network=machines, objective="period", batch=8))
problem = po.compile(model.document)
print(f"{problem.n_tasks} tasks need {int(problem.memory.sum()) / 2**30:.1f} GiB; each machine has", end=" ")
print(*(f"{int(size) / 2**30:.0f}" for size in problem.capacity), "GiB")

# %%
# Some runtimes give each machine the same number of layers, or one in proportion to its memory. The laptop has by far
# the most memory, but its memory is slow.


def divided(shares: Sequence[int], order: Sequence[int]) -> po.Schedule:
    """Stages in the order of the devices, with layers in proportion to the shares."""
    ends = np.rint(np.cumsum(shares) / np.sum(shares) * 32)
    layers = np.asarray(order)[np.searchsorted(ends, np.arange(32), side="right")]
    device = np.concatenate((layers[:1], layers, layers[-1:]))  # the embedding and the head
    return po.retime(problem, po.Schedule(device, np.zeros_like(device)))


best = po.solve(problem, "ideals", workers=1)
assert best.schedule is not None
memory = [int(size) for size in problem.capacity]
plans = {
    "equal numbers": divided((1, 1, 1), (0, 1, 2)),
    "by memory": divided((memory[2], memory[0], memory[1]), (2, 0, 1)),
    "placeopt": best.schedule,
}
rows = {}
for name, plan in plans.items():
    assert po.verify(problem, plan).feasible
    rows[name] = [use.busy / 1e6 for use in po.device_uses(problem, plan)]
    layers = np.bincount(plan.device[1:33], minlength=3)
    period = max(rows[name])
    print(f"{name:13}  layers {layers}  period {period:5.2f} ms  {8000 / period:4.0f} tokens/s")
print(f"proved: no contiguous plan has a period below {float(best.bound or 0) / 1e6:.2f} ms")

# %%
# Layers in proportion to memory take three times the best period: the laptop becomes the bottleneck, and both desktops
# wait.
#
# ![Load of each machine for three divisions of the layers](../images/examples/language_model.png)
figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
for d, (name, color) in enumerate(zip(problem.device_names, ("#0072b2", "#e69f00", "#009e73"), strict=True)):
    places = np.arange(len(rows)) + 0.26 * (d - 1)
    bars = axes.barh(places, [loads[d] for loads in rows.values()], height=0.24, color=color, label=name)
    axes.bar_label(bars, fmt="%.1f", padding=3)
axes.set(xlabel="load in each period (ms)", yticks=range(len(rows)), yticklabels=list(rows))
axes.invert_yaxis()
axes.set_title("The busiest machine decides the throughput", loc="left", weight="bold")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
figure.savefig("language_model.png", dpi=130)
