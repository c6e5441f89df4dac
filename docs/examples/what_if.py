"""What if the hardware were better?

Which upgrade of a machine helps most, and which cannot help at all?

A drone maps a field while it flies. Its computer has two CPU cores and a GPU with 5.2 GiB of memory. Two of the
neural networks need 3 GiB each, so only one of them fits on the GPU.
"""

import placeopt as po

problem = po.compile(
    {
        "placeopt": 1,
        "name": "drone",
        "resolution": "1 us",
        "devices": {"cpu": {"count": 2}, "gpu": {"memory": "5.2 GiB"}},
        "links": {"default": {"bandwidth": "3 GB/s", "latency": "20 us"}},
        "tasks": {
            "read": {"time": {"cpu": "3 ms"}, "output": "24 MB"},
            "detect": {"time": {"cpu": "38 ms", "gpu": "9 ms"}, "memory": "3 GiB", "after": "read", "output": "2 MB"},
            "segment": {"time": {"cpu": "21 ms", "gpu": "7 ms"}, "memory": "3 GiB", "after": "read", "output": "12 MB"},
            "depth": {"time": {"cpu": "16 ms", "gpu": "4 ms"}, "memory": "1 GiB", "after": "read", "output": "12 MB"},
            "track": {"time": {"cpu": "5 ms", "gpu": "2 ms"}, "after": ["detect", "segment"]},
            "map": {"time": {"cpu": "8 ms", "gpu": "6 ms"}, "after": ["segment", "depth"]},
            "plan": {"time": {"cpu": "2 ms"}, "after": ["track", "map"]},
        },
    }
)

# %%
# `po.whatif` solves the problem as it is and with each change: one more device of each type, faster devices, more
# memory and a faster network. Each change gets a new schedule and a new lower bound. `gain` is what the new schedule
# saves; no schedule saves more than `gain_at_most`.
found = po.whatif(problem, solver="cp-sat", time_limit=20, workers=1)
assert found.base.makespan is not None
print(f"{'as it is':33} {found.base.makespan / 1000:.1f} ms")
for variant in found.variants:
    text, makespan = variant.change.text, (variant.result.makespan or 0) / 1000
    print(f"{text:33} {makespan:.1f} ms  gain {variant.gain:5.1%}  at most {variant.gain_at_most:5.1%}")

# %%
# Faster CPU cores help most, because one network has to run there. A second GPU has memory for the other network, and
# helps half as much. A third core does not help at all. No network, however fast, saves more than 6%, so faster links
# are not worth their price. [What-if](../whatif.md) explains all changes.
#
# ![A bar for each change: the makespan that it saves](../images/examples/what_if.png)
found.plot("what_if.png")
