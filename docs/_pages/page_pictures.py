"""Draw the pictures of the README and the documentation, except those of docs/examples and benchmarks.

    python docs/_pages/page_pictures.py [NAME ...]

Plans come from problems/plans, or from solvers with one worker and a fixed seed: a second run gives the same figures.
The texts of a picture are its Description in the PNG file, so that tests can compare them with the pages. Graphviz
computes the layout of graphs. Without Graphviz, graphs look different.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import placeopt as po
from placeopt.generate.random_graphs import random_document
from placeopt.model.building import build_problem
from placeopt.model.memory import memory_profile
from placeopt.model.segments import cut_segments
from placeopt.serving.pictures import draw_layers
from placeopt.views.plots import draw_schedule, palette
from placeopt.views.plots.canvas import Picture, fill, line_legend, line_sample, new_picture, patch_sample, styled
from placeopt.views.plots.profiles import draw_profile
from placeopt.views.plots.timelines import highest, step_area

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "images"
GIB = 2**30
MARGIN = 14
"""White rows of pixels that are kept around the others."""
LIMIT = 10
"""GiB of the device that `memory_models` draws."""

MEMORY = """
placeopt: 1
resolution: 1 us
devices: {gpu: {}}
tasks:
  layer1: {time: 2 ms, output: 2 GiB, memory: {resident: 0.5 GiB, scratch: 1 GiB}}
  layer2: {time: 3 ms, output: 1.5 GiB, memory: {resident: 1 GiB, scratch: 1.5 GiB}, after: layer1}
  layer3: {time: 3 ms, output: 1 GiB, memory: {resident: 1 GiB, scratch: 1 GiB}, after: layer2}
  layer4: {time: 2 ms, output: 0.5 GiB, memory: {resident: 1.5 GiB, scratch: 0.5 GiB}, after: layer3}
"""
PORTS = """
placeopt: 1
resolution: 1 us
devices: {cpu: {}, gpu: {count: 3}}
links: {default: {bandwidth: 1 GB/s}}
tasks:
  read:  {time: 2 ms, output: 4 MB, pin: cpu}
  left:  {time: 6 ms, output: 1 MB, pin: gpu2, after: read}
  front: {time: 6 ms, output: 1 MB, pin: gpu1, after: read}
  right: {time: 6 ms, output: 1 MB, pin: gpu0, after: read}
  fuse:  {time: 2 ms, pin: cpu, after: [left, front, right]}
"""
STAGES = """
placeopt: 1
resolution: 1 us
objective: period
devices: {gpu: {count: 3}}
links: {default: {bandwidth: 16 GB/s}}
tasks:
  embed:  {time: 4 ms, output: 2 MB}
  layer1: {time: 6 ms, output: 2 MB, after: embed}
  layer2: {time: 6 ms, output: 2 MB, after: layer1}
  head:   {time: 2 ms, after: layer2}
"""


def plan(name: str) -> tuple[po.Problem, po.Schedule, int]:
    """Return a problem of problems/, its plan in problems/plans, and the bound in ticks that the problem states."""
    file = ROOT / "problems" / f"{name}.yaml"
    problem = po.load(file)
    stored = po.read_plan(ROOT / "problems" / "plans" / f"{name}.json", problem)
    return problem, stored.schedule, yaml.safe_load(file.read_text(encoding="utf-8"))["best_known"]["bound"]


def stored(name: str, kind: str, title: str) -> list[Picture]:
    """Draw the plan of a problem in problems/plans."""
    problem, schedule, bound = plan(name)
    return [draw_schedule(problem, schedule, kind, title=title, bound=bound)]


def tutorial() -> list[Picture]:
    """Draw the optimum of the problem of the tutorial."""
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    text = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    result = po.solve(po.compile(yaml.safe_load(text)), "cp-sat", workers=1)
    return [result.plot(title="Two cameras, two CPU cores, two GPUs")]


@styled()
def memory_models() -> list[Picture]:
    """Draw what counts on one device over time under both memory models: resident, output and scratch."""
    problem = po.compile(yaml.safe_load(MEMORY))
    schedule = po.simulate(problem, [0] * problem.n_tasks)
    nothing = 0 * problem.output
    parts = {  # each holds those below it
        "scratch": (problem, palette.HUES[1]),
        "output": (replace(problem, scratch=nothing), palette.HUES[4]),
        "resident": (replace(problem, scratch=nothing, output=nothing), palette.HUES[0]),
    }
    picture = new_picture(3.3, "Memory of four layers on one device")
    panels = picture.subplots(1, 2, sharey=True)
    edges = np.linspace(0, 10_000, 101)  # ticks
    for axes, model in zip(panels, ("sum", "peak"), strict=True):
        most = 0.0
        for some, color in parts.values():
            live = highest(*memory_profile(some, schedule, 0), edges) / GIB
            level = live if model == "peak" else np.full(100, some.memory.sum() / GIB)
            fill(axes, [step_area(edges / 1000, level, 0.0)], [color], zorder=2)
            most = max(most, level.max())
        axes.axhline(LIMIT, color=palette.LIMIT, linewidth=1.4, linestyle=(0, (4, 2)), zorder=3)
        axes.set_title(f"memory_model: {model} counts {most:g} GiB")
        axes.set(xlim=(0, 10), ylim=(0, 15), xlabel="time (ms)")
        for task, name in enumerate(problem.task_names):
            start, end = schedule.start[task] / 1000, (schedule.start[task] + problem.duration[task, 0]) / 1000
            axes.text((start + end) / 2, 14.2, name, ha="center", va="center", color=palette.MUTED, fontsize=8.5)
            axes.axvline(end, color=palette.GRID, linewidth=0.8, zorder=1)
    panels[0].set_ylabel("memory (GiB)")
    entries = [(patch_sample(color), name) for name, (_, color) in reversed(parts.items())]
    line_legend(picture, [*entries, (line_sample(palette.LIMIT, width=1.4, dashes=(4, 2)), f"capacity {LIMIT} GiB")])
    return [picture]


def ports() -> list[Picture]:
    """Draw one placement with and without port contention."""
    pictures = []
    for contention in ("none", "port"):
        problem = po.compile(yaml.safe_load(PORTS) | {"contention": contention})
        schedule = po.simulate(problem, [0, 3, 2, 1, 0])
        pictures.append(draw_schedule(problem, schedule, title=f"contention: {contention}"))
    return with_one_axis(pictures)


def stages() -> list[Picture]:
    """Draw the optima of one pipeline with contiguous and with free stages."""
    pictures = []
    for rule, title in (("contiguous", "stages: contiguous"), ("free", "Free stages: a device may have several")):
        pipeline = {"stages": rule} if rule == "contiguous" else {}
        problem = po.compile(yaml.safe_load(STAGES) | {"pipeline": pipeline})
        pictures.append(po.solve(problem, "cp-sat", workers=1).plot(title=title))
    return with_one_axis(pictures)


@styled()
def with_one_axis(pictures: list[Picture]) -> list[Picture]:
    """Give all pictures the longest of their time axes, in the same place."""
    end = max(picture.axes[0].get_xlim()[1] for picture in pictures)
    for picture in pictures:
        picture.axes[0].set_xlim(0, end)
        picture.draw_without_rendering()
    boxes = [picture.axes[0].get_position() for picture in pictures]
    left, right = max(box.x0 for box in boxes), min(box.x1 for box in boxes)
    for picture, box in zip(pictures, boxes, strict=True):
        picture.set_layout_engine("none")
        picture.axes[0].set_position((left, box.y0, right - left, box.height))
    return pictures


def profile() -> list[Picture]:
    """Draw the performance profile of some solvers on random graphs."""
    problems = [po.compile(random_document(40, 4, seed=seed, data=300)) for seed in range(20)]
    found = {}
    for solver in ("annealing", "lookahead-heft", "heft", "peft", "cpop", "etf", "min-min"):
        settings: dict[str, Any] = {"rounds": 2000} if solver == "annealing" else {}
        found[solver] = np.array([po.solve(each, solver, workers=1, **settings).makespan for each in problems])
    best = np.min(list(found.values()), axis=0)
    ratios = {solver: np.sort(values / best) for solver, values in found.items()}
    shares = np.arange(1, len(best) + 1) / len(best)
    order = sorted(ratios, key=lambda solver: ratios[solver].mean())
    steps = {solver: list(zip(ratios[solver].tolist(), shares.tolist(), strict=True)) for solver in order}
    return [draw_profile(steps, problems=len(best), title="Seven solvers on random graphs of 40 tasks")]


def split() -> list[Picture]:
    """Draw a model of the package onnx as imported, as placed, and as the segments that are exported."""
    import onnx

    model = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
    problem = po.compile(po.from_onnx(model, devices="xeon-core:2").document)
    schedule = po.solve(problem, "heft", consolidate=0).schedule
    assert schedule is not None
    segments = cut_segments(problem, schedule, at_transfers=True)
    ends = segments.member[np.stack([problem.edge_source, problem.edge_target], axis=1)].tolist()
    edges = sorted({(a, b) for a, b in ends if a != b})
    parts = build_problem(
        task_names=[str(k) for k in range(len(segments))], device_names=problem.device_names, edges=edges,
        device_types=problem.device_types, duration=np.ones((len(segments), 2), dtype=np.int64),
    )  # fmt: skip
    last = draw_schedule(parts, po.simulate(parts, segments.device), "graph", title="3. Export: a model per segment")
    last.texts[1].set_text(last.texts[1].get_text().replace("tasks", "segments"))
    return [
        draw_schedule(problem, None, "graph", title="1. Import: a task per operator of squeezenet.onnx"),
        draw_schedule(problem, schedule, "graph", title="2. Solve: a device per task"),
        last,
    ]


def changes() -> list[Picture]:
    """Draw the gains of changes, which start from a stored plan."""
    problem, schedule, _ = plan("inception-tight")
    found = po.whatif(problem, solver="annealing", time_limit=None, workers=1, initial=schedule, rounds=3000)
    return [found.plot()]


def front() -> list[Picture]:
    """Draw the points of a Pareto front."""
    problem = po.load(ROOT / "problems" / "sensor-fusion.yaml")
    found = po.pareto(problem, ("makespan", "communication"), points=5, workers=1, time_limit=None)
    return [found.plot()]


def layers() -> list[Picture]:
    """Draw a stored plan of a serving problem."""
    folder = ROOT / "problems" / "serving"
    problem = po.load_serving(folder / "llama-70b-24.yaml")
    return [draw_layers(problem, po.read_replicas(folder / "plans" / "llama-70b-24.json", problem))]


PICTURES: dict[str, Callable[[], Sequence[Picture]]] = {
    "inception-gantt": partial(stored, "inception", "gantt", "Inception-v3: 311 operators on two CPU cores and a GPU"),
    "inception-graph": partial(stored, "inception", "graph", "The same as a graph: which operator is where"),
    "inception-tight-memory": partial(stored, "inception-tight", "memory", "Inception-v3 on devices with 118 MiB each"),
    "four-stages-gantt": partial(stored, "four-stages", "gantt", "Training of 24 transformer layers as four stages"),
    "four-stages-memory": partial(stored, "four-stages", "memory", "Memory of the four stages"),
    "tutorial-gantt": tutorial,
    "memory-models": memory_models,
    "ports": ports,
    "stages": stages,
    "profile": profile,
    "split": split,
    "whatif": changes,
    "pareto": front,
    "serving": layers,
}
"""How each picture is drawn; several parts are put one below the other."""


def encoded(pictures: Sequence[Picture]) -> bytes:
    """Return pictures as one PNG file with few colours, one below the other, with their texts as its Description."""
    parts = [_trimmed(Image.open(BytesIO(picture._repr_png_())).convert("RGB")) for picture in pictures]
    whole = Image.new("RGB", (max(part.width for part in parts), sum(part.height for part in parts)), "white")
    top = 0
    for part in parts:
        whole.paste(part, (0, top))
        top += part.height
    facts = PngInfo()
    facts.add_text("Description", "\n".join(text for picture in pictures for text in texts(picture)))
    stream = BytesIO()
    whole.quantize(64, dither=Image.Dither.NONE).save(stream, "png", optimize=True, pnginfo=facts)
    return stream.getvalue()


def _trimmed(part: Image.Image) -> Image.Image:
    """Leave out white rows, except for margins."""
    pixels = np.asarray(part)
    inked = (pixels < 255).any(axis=(1, 2))
    return Image.fromarray(pixels[np.convolve(inked, np.ones(2 * MARGIN + 1), "same") > 0])


def texts(picture: Picture) -> list[str]:
    """Return title, notes, legend and titles of the panels of a picture."""
    legends = [text for legend in picture.legends for text in legend.get_texts()]
    found = [text.get_text() for text in (*picture.texts, *legends)]
    return [*found, *filter(None, (axes.get_title(loc) for axes in picture.axes for loc in ("left", "center")))]


def main(names: Sequence[str]) -> None:
    """Draw some pictures, by default all."""
    for name in names or PICTURES:
        (FOLDER / f"{name}.png").write_bytes(encoded(PICTURES[name]()))


if __name__ == "__main__":
    main(sys.argv[1:])
