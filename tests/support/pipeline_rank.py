"""One process of a pipeline: `python pipeline_rank.py RANK FOLDER`. Runs its stage by an exported split_spec.

The folder has `stages.json`, an export of the format split-spec. The last process writes `output.pt`.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

MICROBATCHES = 4

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # those of PyTorch about its own functions
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import ScheduleGPipe, SplitPoint, pipeline
    from torch_models import Mlp

    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    exported = json.loads((folder / "stages.json").read_text())
    world = len(exported["stages"])
    dist.init_process_group("gloo", init_method=f"file://{folder / 'rendezvous'}", rank=rank, world_size=world)
    torch.manual_seed(0)
    model, whole = Mlp(8, 16, 16, 16, 4).eval(), torch.randn(8, 8)
    spec = {path: SplitPoint[point] for path, point in exported["split_spec"].items()}
    pipe = pipeline(model, mb_args=(whole.chunk(MICROBATCHES)[0],), split_spec=spec)
    assert pipe.num_stages == world
    schedule = ScheduleGPipe(pipe.build_stage(rank, torch.device("cpu")), MICROBATCHES)
    with torch.no_grad():
        output = schedule.step(whole) if rank == 0 else schedule.step()
        if rank == world - 1:
            torch.save((output, model(whole)), folder / "output.pt")
    dist.barrier()
    dist.destroy_process_group()
