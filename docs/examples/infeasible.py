"""An infeasible problem explained.

A problem has no schedule. Which of its constraints contradict each other, and what is the least change that helps?

A voice assistant answers on a small board: it recognises speech, runs a language model and speaks. The language model
needs most of the accelerator's memory, the answer has a deadline, and the recogniser and its beam search have to share
a device.
"""

from typing import Any

import placeopt as po

document: dict[str, Any] = {
    "placeopt": 1,
    "name": "assistant",
    "resolution": "1 ms",
    "devices": {"cpu": {"count": 2, "memory": "8 GiB"}, "npu": {"memory": "4 GiB", "features": ["int8"]}},
    "links": {"default": {"latency": "2 ms"}},
    "tasks": {
        "listen": {"time": {"cpu0": "20 ms"}, "release": "30 ms"},
        "recognise": {
            "time": {"cpu": "240 ms", "npu": "60 ms"}, "memory": "1500 MiB", "after": "listen", "colocate": "speech",
        },
        "search": {
            "time": {"cpu": "90 ms", "npu": "70 ms"}, "memory": "200 MiB", "after": "recognise", "colocate": "speech",
        },
        "intent": {"time": {"cpu": "35 ms"}, "memory": "300 MiB", "after": "recognise"},
        "answer": {
            "time": {"npu": "180 ms"}, "memory": "3 GiB", "after": ["search", "intent"], "requires": "int8",
        },
        "speak": {"time": {"cpu": "55 ms", "npu": "20 ms"}, "memory": "500 MiB", "after": "answer",
            "deadline": "450 ms"},
    },
}  # fmt: skip

# %%
# A solver reports only that no schedule exists. `po.explain` returns a minimal set of constraints: without any one of
# them, the others can be satisfied. For each, it states the least change that makes the problem feasible.
result = po.solve(po.compile(document), "cp-sat", workers=1)
print(f"cp-sat: {result.termination.value}")
explanation = po.explain(document, time_limit=20, workers=1)
for member in explanation.members:
    assert member.repair is not None
    print(f"- {member.text}\n  change: {member.repair.text}")

# %%
# The colocation is not in the set, because removing it would not help. The NPU has no memory left next to the language
# model, so speech is recognised on a CPU core, which takes too long. Either the NPU needs more memory or the deadline
# must be later. The stated change is the exact minimum, as two more runs confirm.
for delay in (581, 582):
    document["tasks"]["speak"]["deadline"] = f"{delay} ms"
    result = po.solve(po.compile(document), "cp-sat", workers=1)
    print(f"deadline {delay} ms: {result.termination.value}")

# %%
# `explanation.to_dict()` contains the same as plain data.
#
# ![Schedule with the deadline moved: speech is recognised on a CPU core](../images/examples/infeasible.png)
picture = result.plot("gantt", title="The answer with the deadline moved to 582 ms")
picture.axes[0].axvline(450, color="#b3123d", linestyle="--")
picture.axes[0].text(455, 0, "first deadline", color="#b3123d", va="center")
picture.write("infeasible.png")
