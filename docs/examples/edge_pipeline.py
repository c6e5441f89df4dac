"""An edge pipeline with deadlines and energy.

How much energy does a tighter deadline cost, and which processors should run?

A battery-powered camera detects and tracks objects in each frame. It has two CPU cores, a GPU and a neural processing
unit (NPU). The faster a processor runs a task, the more energy it usually takes. A server behind Wi-Fi costs the
camera only the energy of the transfer. The result of a frame is needed before a deadline.
"""

from typing import Any

import matplotlib.pyplot as plt

import placeopt as po

# %%
# A deadline is a hard constraint. The objective is a list: the least energy, then the shortest schedule.
tasks: dict[str, dict[str, Any]] = {
    "capture": {"time": {"cpu0": "1 ms"}, "output": "1.4 MB"},
    "resize": {"time": {"cpu": "4 ms", "gpu": "1 ms"}, "after": "capture", "output": "500 kB"},
    "detect": {"time": {"cpu": "80 ms", "gpu": "11 ms", "npu": "16 ms", "server": "3 ms"}, "after": "resize"},
    "segment": {"time": {"cpu": "95 ms", "gpu": "14 ms", "npu": "24 ms", "server": "4 ms"}, "after": "resize"},
    "features": {"time": {"cpu": "18 ms", "gpu": "4 ms", "server": "2 ms"}, "after": "resize", "output": "60 kB"},
    "track": {"time": {"cpu": "5 ms", "server": "1 ms"}, "after": ["detect", "features"], "output": "2 kB"},
    "decide": {"time": {"cpu0": "2 ms"}, "after": ["track", "segment"]},
}
tasks["detect"]["output"] = tasks["segment"]["output"] = "30 kB"
document: dict[str, Any] = {
    "placeopt": 1,
    "name": "camera",
    "resolution": "10 us",
    "devices": {
        "cpu": {"count": 2, "power": "0.9 W"},
        "gpu": {"power": "6 W"},
        "npu": {"power": "1.8 W"},
        "server": {},
    },
    "links": {
        "default": {"bandwidth": "8 GB/s", "energy": "60 pJ/B"},
        "overrides": [{"between": ["server", "*"], "bandwidth": "100 Mb/s", "latency": "3 ms", "energy": "90 nJ/B"}],
    },
    "tasks": tasks,
    "objective": ["energy", "makespan"],
}

# %%
# Each deadline is a separate problem, and CP-SAT solves each to proven optimality. It also proves that no schedule
# meets the shortest deadlines.
energies: dict[int, float] = {}
processors: dict[str, list[int]] = {}
for deadline in range(20, 77, 4):
    tasks["decide"]["deadline"] = f"{deadline} ms"
    result = po.solve(po.compile(document), "cp-sat", time_limit=20, workers=1)
    used = " + ".join(sorted({device.type for device in result.devices if device.tasks})) or result.termination.value
    energies[deadline] = float(result.objective or 0) / 1e6  # from nanojoules
    processors.setdefault(used, []).append(deadline)
for used, deadlines in processors.items():
    spent = " ".join(f"{energies[deadline]:.1f}" for deadline in deadlines if energies[deadline])
    print(f"{deadlines[0]} to {deadlines[-1]} ms  {used}" + (f"  {spent} mJ" if spent else ""))

# %%
# The energy falls in steps: a task moves to another processor as soon as the deadline allows it. With more time the NPU
# replaces the GPU, and then the server replaces both. A deadline of 64 ms saves almost half of the energy of 56 ms.
#
# ![Least energy of a frame for each deadline, in colours by the processors used](../images/examples/edge_pipeline.png)
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
colors = ("#b3123d", "#0072b2", "#e69f00", "#009e73", "#cc79a7")
for (used, deadlines), color in zip(processors.items(), colors, strict=True):
    bars = axes.bar(
        deadlines,
        [energies[deadline] for deadline in deadlines],
        width=3.2,
        color=color,
        label=used if energies[deadlines[0]] else "_",
    )
    axes.bar_label(bars, [f"{energies[d]:.0f}" if energies[d] else "none" for d in deadlines], padding=2)
axes.set(xlabel="deadline of a frame (ms)", ylabel="energy (mJ)", xticks=list(energies))
axes.set_title("Least energy of a frame, and the processors that run it", loc="left", weight="bold")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
figure.savefig("edge_pipeline.png", dpi=130)
