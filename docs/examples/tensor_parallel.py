"""Layers divided among unlike GPUs.

How many GPUs should run a layer together, and which ones?

A language model of 24 layers answers four requests. Two fast GPUs with 3 GiB of free memory and four slow ones with 2
GiB are connected by PCIe. One GPU can run a layer, or two or four can divide its matrices (tensor parallelism): less
work and fewer weights for each, but they exchange data twice in every layer.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import placeopt as po

# %%
# The import writes the ways to run a task as its modes: a single GPU, and teams of two and of four. The GPUs of a team
# share work and weights by their speed.
config = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16",
}  # fmt: skip
gpus = {
    "devices": {
        "fast": {"like": "rtx-4090", "count": 2, "memory": "3 GiB", "overhead": "10 us"},
        "slow": {"like": "rtx-3060", "count": 4, "memory": "2 GiB", "overhead": "10 us"},
    },
    "links": {"default": {"like": "pcie-4-x16", "latency": "10 us"}},
}


def divided(*sizes: int, **options: Any) -> po.Problem:
    """A token of four sequences, on single GPUs or teams of these sizes."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(config))
        given = po.ImportOptions("llama", network=gpus, batch=4, level="part", tensor_parallel=sizes)
        return po.compile(po.import_file(file, options=replace(given, **options)).document)


# %%
# The weights fill three quarters of all memory, so that the slow GPUs must take a large part of them. If every layer
# runs on a single GPU, most of the time is spent on the slow ones. All tasks in teams of four are much faster. The best
# plan mixes the sizes.
for sizes in ((1,), (2,), (4,), (1, 2, 4)):
    problem = divided(*sizes)
    plan = po.solve(problem, "annealing", rounds=20_000, workers=1)
    assert plan.makespan is not None
    print(f"teams of {', '.join(map(str, sizes)):8} {plan.makespan / 1e6:6.2f} ms")

# %%
# A lower bound certifies the last plan: it places the layers along the chain exactly, and gives memory a price.
assert plan.makespan is not None
bound = next(each.value for each in po.bounds(problem, time_limit=5) if each.name == "lagrangian")
print(f"no plan takes less than {float(bound) / 1e6:.2f} ms: the gap is {float(1 - bound / plan.makespan):.1%}")
assert plan.schedule is not None
members = Counter(problem.device_names[d].partition(":")[0] for d in plan.schedule.device.tolist())
for team, tasks in members.most_common():
    print(f"{tasks:3} tasks on {team}")

# %%
# Teams of both fast GPUs and two slow ones run most tasks. The others have one fast GPU and three slow ones: they use
# the memory of the slow GPUs, which the fast plan needs. In the picture, a task of a team is in the lanes of all its
# members.
#
# ![Schedule of a language model on teams of GPUs](../images/examples/tensor_parallel.png)
plan.plot("gantt", "tensor_parallel.png", title="One token of four sequences on teams of GPUs")

# %%
# A pipeline with six batches of four requests under way is another problem: its metric is the period, and each stage
# runs on a GPU or a team. Teams exchange data without doing more work, so that here the fast GPUs work alone.
pipeline = divided(1, 2, 4, level="layer", objective="period", context=512)
stages = po.solve(pipeline, "cp-sat", workers=1, time_limit=5)
assert stages.period is not None
print(f"a token for four requests every {stages.period / 1e6:.2f} ms")
assert stages.schedule is not None
for use in po.stage_uses(pipeline, stages.schedule):
    print(f"{use.tasks:3} tasks on {use.devices[0]}")
