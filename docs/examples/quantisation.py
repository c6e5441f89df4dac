"""Which layers keep 16 bits.

A language model is too large for a GPU. Which layers should have fewer bits, so that the others keep their precision?

The model has 32 layers. Its weights in 16 bits take 13 GiB, and the GPU has 9 GiB left. Each layer runs in 16, 8 or 4
bits, on the GPU or on the CPU. Fewer bits take less memory and less time to read, but they change the output. The sum
of these errors has a limit, a budget.
"""

from typing import Any

import matplotlib.pyplot as plt

import placeopt as po

# %%
# A mode states what differs from the task: the bytes that a layer reads, the memory it takes, and its error. The errors
# are assumptions: 4 bits cost ten times as much as 8 bits, and the first and last layers most, as measured for many
# models.
LAYERS = 32
sensitivity = [5 if layer < 2 or layer >= LAYERS - 2 else 1 + layer % 3 for layer in range(LAYERS)]


def layer_modes(weight: int) -> dict[str, Any]:
    """A layer in three formats, with errors for a sensitivity of `weight`."""
    sizes = {"16 bits": 436_207_616, "8 bits": 218_103_808, "4 bits": 122_683_392}
    errors = {"16 bits": 0.0, "8 bits": 0.01, "4 bits": 0.1}
    return {
        name: {"bytes": size, "memory": size, "uses": {"error": round(errors[name] * weight, 3)}}
        for name, size in sizes.items()
    }


tasks: dict[str, dict[str, Any]] = {"embedding": {"bytes": 8192, "output": 8192, "devices": "cpu"}}
for layer in range(LAYERS):
    previous = f"layer{layer - 1}" if layer else "embedding"
    tasks[f"layer{layer}"] = {"output": 8192, "after": previous, "modes": layer_modes(sensitivity[layer])}
document: dict[str, Any] = {
    "placeopt": 1,
    "name": "quantisation",
    "resolution": "1 us",
    "devices": {
        "cpu": {"memory": "32 GiB", "memory_bandwidth": "60 GB/s"},
        "gpu": {"memory": "9 GiB", "memory_bandwidth": "900 GB/s", "overhead": "20 us"},
    },
    "links": {"default": {"bandwidth": "25 GB/s", "latency": "10 us"}},
    "tasks": tasks,
}

# %%
# CP-SAT solves the problem for each budget. With one worker and a limit of its work, its answer does not depend on the
# clock.
formats = list(layer_modes(1))
rows: dict[str, list[int]] = {}
for budget in (0.0, 0.5, 2.0):
    problem = po.compile({**document, "budgets": {"error": budget}})
    result = po.solve(problem, "cp-sat", workers=1, work=1.0)
    assert result.schedule is not None
    assert result.makespan is not None
    chosen = [problem.device_names[d].split(": ") for d in result.schedule.device.tolist()[1:]]
    rows[f"{budget:g}"] = [formats.index(name) + len(formats) * (device == "cpu") for device, name in chosen]
    counts = [f"{rows[f'{budget:g}'].count(k)} with {name}" for k, name in enumerate(formats)]
    spilled = sum(device == "cpu" for device, _ in chosen)
    print(f"budget {budget:3}: {result.makespan / 1000:6.2f} ms, gap {result.gap:4.1%}: ", end="")
    print(", ".join(counts), f"on the GPU, {spilled} layers on the CPU")

# %%
# Without a budget for errors, layers must run on the slow CPU. A budget of 0.5 brings all of them to the GPU, and the
# sensitive layers at both ends keep 16 bits. A larger budget buys speed: fewer bytes are read for each token.
#
# ![Format of each layer for three budgets](../images/examples/quantisation.png)
colors = ["#1b6ca8", "#7ab8e0", "#d7ebf7", "#b4690e", "#e3a857", "#f4dcb4"]
figure, axes = plt.subplots(figsize=(8, 2.2), layout="constrained")
for y, layers in enumerate(rows.values()):
    axes.barh([y] * LAYERS, 1, left=range(LAYERS), height=0.8, color=[colors[k] for k in layers], edgecolor="white")
axes.set_yticks(range(len(rows)), list(rows))
axes.invert_yaxis()
axes.set_xlim(0, LAYERS)
axes.set_xlabel("layer")
axes.set_ylabel("budget of errors")
for k, name in enumerate([*formats, *(f"{each}, CPU" for each in formats)]):
    axes.bar(0, 0, color=colors[k], label=name)
axes.legend(ncols=6, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=8)
figure.savefig("quantisation.png", dpi=150)
