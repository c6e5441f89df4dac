"""An edge pipeline with deadlines and energy.

How much energy does a tighter deadline cost, and which processors should run?

A battery-powered camera detects and tracks objects in each frame. It has two CPU cores, a GPU and a neural processing
unit (NPU). The faster a processor runs a task, the more energy it usually takes. A server behind Wi-Fi costs the
camera the energy of the transfer only. The result of a frame is needed before a deadline.
"""

from typing import Any

import matplotlib.pyplot as plt

import placeopt as po

# %%
# A deadline is a hard constraint: a schedule that misses it is infeasible. The objective is a list: the least energy
# first, then the shortest schedule among those of least energy.
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
# Each deadline is a problem of its own, and CP-SAT solves each to proven optimality. It also proves that no schedule
# meets the shortest deadlines. Of each set of processors the output shows the first deadline only.
deadlines, energies, shown = list[int](), list[float](), ""
steps = []
for deadline in range(20, 81, 2):
    tasks["decide"]["deadline"] = f"{deadline} ms"
    result = po.solve(po.compile(document), "cp-sat", time_limit=20, workers=1)
    used = " + ".join(sorted({device.type for device in result.devices if device.tasks})) or result.termination.value
    if result.objective is not None:
        deadlines.append(deadline)
        energies.append(float(result.objective) / 1e6)  # nanojoules
    if used != shown:
        print(f"{deadline} ms  {used}" + (f"  {energies[-1]:.1f} mJ" if energies else ""))
        steps += [(deadline, energies[-1], used)] if energies else []
        shown = used

# %%
# The energy falls in steps: a task moves to another processor as soon as the deadline allows it. With more time the
# NPU replaces the GPU, and then the server replaces both. A deadline of 64 ms takes little more than half the energy
# of 56 ms, so these 8 ms are worth a discussion.
#
# ![Least energy of a frame for each deadline, a falling line of steps](../images/examples/edge_pipeline.png)
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
axes.axvspan(20, deadlines[0], color="#b3123d", alpha=0.12, linewidth=0)
axes.text(20.4, 8, "infeasible", color="#b3123d")
axes.fill_between(deadlines, energies, step="post", color="#0072b2", alpha=0.15)
axes.step(deadlines, energies, where="post", color="#0072b2", linewidth=2)
for deadline, energy, used in steps:
    axes.annotate(used, (deadline, energy), (4, 5), textcoords="offset points")
axes.set(xlim=(20, 80), ylim=(0, 170), xlabel="deadline of a frame (ms)", ylabel="energy (mJ)")
axes.set_title("Least energy of a frame, and the processors that run it", loc="left", weight="bold")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("edge_pipeline.png", dpi=130)
