"""A network in 256 KiB.

Does a network fit on a microcontroller, in which order must it run, and where in the memory should each buffer be?

The network has eleven layers between the camera and the scores, joined at random as in randomly wired networks (Xie et
al., ICCV 2019), in 8 bits. The microcontroller has 256 KiB of SRAM for activations; weights are read from flash.
"""

import placeopt as po

# %%
# A layer needs its inputs, its output and a buffer at the same time, and an output is freed after the last layer that
# reads it. `memory_model="peak"` counts that. `addresses` also asks for an offset of each buffer.
m = po.Model("microcontroller", resolution="1 us", precision="int8", memory_model="peak")
m.set(addresses={"alignment": "16 B"})
m.add_device("mcu", memory="256 KiB", speed={"int8": "480 MFLOP/s"})

layers = {  # the layers that a layer reads, and its channels, of 48 x 48 values each
    "stem": (["image"], 16), "conv1": (["stem"], 20), "conv2": (["stem"], 20), "conv3": (["stem", "conv2"], 28),
    "conv4": (["stem"], 12), "conv5": (["conv1"], 12), "conv6": (["conv4"], 24), "conv7": (["conv6"], 20),
    "conv8": (["conv4", "conv7"], 32), "conv9": (["conv7", "conv8"], 32), "conv10": (["conv6"], 12),
}  # fmt: skip
channels = {"image": 3}
m.add_task("image", time="2 ms", output="27648 B")
for name, (inputs, number) in layers.items():
    channels[name] = number
    read = sum(channels[each] for each in inputs)
    m.add_task(
        name, after=inputs, output=f"{48 * 48 * number} B", memory={"scratch": f"{36 * read} B"},
        flops=f"{2 * 9 * 48 * 48 * read * number} FLOP",
    )  # fmt: skip
ends = ["conv3", "conv5", "conv9", "conv10"]
m.add_task("reduce", after=ends, output="27648 B", flops="41.8 MFLOP", memory={"scratch": "3024 B"})
m.add_task("classes", after="reduce", output="10 B", flops="56 kFLOP")

# %%
# HEFT takes the layers in the order of their ranks, which needs too much memory. CP-SAT finds an order and offsets
# together.
print("heft:  ", m.solve("heft", time_limit=5).schedule is not None)
result = m.solve("cp-sat", time_limit=30)
assert result.schedule is not None
print("cp-sat:", result.feasible, result.termination.value)
names = m.problem().task_names
print(" ".join(names[task] for task in result.schedule.start.argsort(kind="stable")))

# %%
# Each buffer is a box: from its start to the end of its last reader, at its offset.
#
# ![Buffers of a microcontroller over time and offset](../images/examples/microcontroller.png)
allocation = po.allocate_plan(m.problem(), result.schedule, alignment=16)[0]
allocation.plot("microcontroller.png", title="microcontroller")
print(f"height {allocation.height:,} of {256 * 1024:,} bytes")

# %%
# [Offsets of buffers](../allocation.md) explains the allocator and `addresses`.
