"""A device is lost.

Which tasks should move when a device fails, and when does it pay to move more than that?

Three cameras at a crossing send frames to three edge computers, which detect road users in each frame and merge what
they find. A computer that starts a detector has to load it first. Then the fast computer fails.
"""

from typing import Any

import matplotlib.pyplot as plt

import placeopt as po

# %%
# `migration` states what it costs to move a task: the bytes that move and the start-up time on the new device.
detector = {"bytes": "90 MB", "startup": {"fast": "800 ms", "medium": "2 s", "slow": "4 s"}}
tasks: dict[str, Any] = {"merge": {"time": {"fast": "4 ms", "medium": "6 ms", "slow": "11 ms"}, "after": []}}
cameras: dict[str, Any] = {name: {"type": "camera"} for name in ("north", "south", "east")}
for camera in cameras:
    tasks[camera] = {"time": 0, "pin": camera, "output": "250 kB"}
    for find, ms in (("cars", 10), ("people", 14)):
        times = {"fast": f"{ms} ms", "medium": f"{2 * ms} ms", "slow": f"{3 * ms} ms"}
        tasks[f"{find} {camera}"] = {"time": times, "after": camera, "output": "9 kB", "migration": detector}
        tasks["merge"]["after"].append(f"{find} {camera}")
document = {
    "placeopt": 1,
    "name": "crossing",
    "resolution": "100 us",
    "devices": {"fast": {}, "medium": {}, "slow": {}} | cameras,
    "links": {"default": {"bandwidth": "1 Gb/s", "latency": "1 ms"}},
    "tasks": tasks,
}
before = po.solve(po.compile(document), "heft")
assert before.schedule is not None
assert before.makespan is not None
print(f"before the failure: {before.makespan / 10:.1f} ms for a frame")

# %%
# `po.replace` takes the plan and the remaining devices. The tasks of the failed device have to move. Whether
# others move too depends on `runs`, the number of frames until the next change: a move costs time
# once and saves time in each frame.
for runs in (1, 100, 1000):
    answer = po.replace(
        document,
        before.schedule,
        {"devices": {"medium": {}, "slow": {}} | cameras},
        solver="cp-sat",
        runs=runs,
        workers=1,
    )
    assert answer.result.makespan is not None
    assert answer.relocation is not None
    makespan, cost = answer.result.makespan / 10, answer.relocation / 10_000
    moves, chosen = len(answer.moves), [move.task for move in answer.moves if move.why == "chosen"]
    print(f"{runs:4} frames: {makespan:5.1f} ms each, {cost:4.1f} s to move {moves} tasks, chosen: {chosen}")
print(f"the last plan pays for itself after {answer.pays_after} frames")

# %%
# For one frame, the cheapest moves are best. For a thousand, a task whose device still works moves to the other one.
# `pays_after` is the number of frames after which the additional moves have paid for themselves.
#
# ![Schedules of a frame before and after the failure](../images/examples/lost_device.png)
figure, panels = plt.subplots(2, 1, figsize=(9, 4.4), sharex=True, layout="constrained")
rows = ["slow", "medium", "fast"]
moved = {move.task for move in answer.moves}
for axes, result, title in zip(panels, (before, answer.result), ("before", "after, for 1000 frames"), strict=True):
    problem, schedule = result.problem, result.schedule
    assert schedule is not None
    for k, (start, device) in enumerate(zip(schedule.start / 10, schedule.device, strict=True)):
        task, name, length = problem.task_names[k], problem.device_names[device], problem.duration[k, device] / 10
        if name in rows:
            color = "#d55e00" if task in moved else "#0072b2"
            axes.barh(rows.index(name), length, left=start, color=color, edgecolor="white", alpha=0.85)
            label = task.replace(" ", "\n")
            axes.text(start + length / 2, rows.index(name), label, ha="center", va="center", color="white", fontsize=7)
    axes.set_title(title, loc="left", weight="bold")
    axes.set_yticks(range(3), rows)
    axes.spines[["top", "right"]].set_visible(False)
panels[1].text(1, 2, "lost", va="center", color="#b3123d")
panels[1].set(xlim=(0, None), ylim=panels[0].get_ylim(), xlabel="time (ms); orange tasks move")
figure.savefig("lost_device.png", dpi=130)
