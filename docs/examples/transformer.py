"""A transformer on different GPUs.

A model does not fit on the fastest GPU. Which operators should run on the slower GPUs?

The model is a Transformer with two encoder layers and two decoder layers. The batch has 64 sentences of 256 tokens,
and each attention head is a separate task. The machine has a V100 and two T4s, connected by PCIe. Each GPU has 10
GiB of free memory. The forward pass needs more, because training keeps all activations for the backward pass.
"""

import placeopt as po
from placeopt.generate import model_document

# %%
# The generator computes FLOPs, bytes, activations and weights of each operator. With the speed and the memory
# bandwidth of a GPU, the compiler estimates durations by the roofline model.
model = model_document(
    "transformer", layers=2, width=1024, ff_width=4096, heads=8, split_heads=True, batch=64, source_length=256,
    target_length=256,
)  # fmt: skip
devices = {
    "v100": {"memory": "10 GiB", "speed": "15.7 TFLOP/s", "memory_bandwidth": "900 GB/s", "overhead": "5 us"},
    "t4": {"count": 2, "memory": "10 GiB", "speed": "8.1 TFLOP/s", "memory_bandwidth": "320 GB/s", "overhead": "5 us"},
}
links = {"default": {"bandwidth": "12 GB/s", "latency": "10 us"}}
problem = po.compile({**model, "devices": devices, "links": links, "resolution": "1 us"})
need, largest = int(problem.memory.sum()) / 2**30, int(problem.capacity.max()) / 2**30
print(f"{problem.n_tasks} operators need {need:.1f} GiB; the largest GPU has {largest:.0f} GiB")

# %%
# HEFT takes the operators one by one and places each where it ends first. It fills the V100 with the first operators,
# and has to run the large ones at the end on a T4. Simulated annealing starts from that schedule and moves operators.
heft = po.solve(problem, "heft")
better = po.solve(problem, "annealing", initial="heft", rounds=150_000, workers=1)
for result in (heft, better):
    assert result.makespan is not None
    print(f"{result.solver:9}  makespan {result.makespan / 1000:.0f} ms  gap {result.gap:.0%}")

# %%
# The gap is the distance to a proven lower bound, as a share of the makespan. It limits what any other solver could
# save. The V100 keeps the large operators and is full; the T4s take many small ones.
for device in better.devices:
    print(f"{device.name}: {device.tasks} operators, {device.memory / 2**30:.1f} GiB")

# %%
# The dashed line in the picture is the lower bound. The T4s compute a few attention heads and free memory of the V100
# for the output layer (`logits`), which would take twice as long on a T4.
#
# ![Schedule of the Transformer on a V100 and two T4s](../images/examples/transformer.png)
better.plot("gantt", "transformer.png", title="Forward pass of a Transformer on a V100 and two T4")
