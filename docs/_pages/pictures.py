"""Draw images of the README and the documentation from the plans in problems/plans into docs/images.

    python docs/_pages/pictures.py [FOLDER]

Graphviz computes the layout of graphs. Without Graphviz, graphs look different.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

import placeopt as po
from placeopt.views.plots import draw_schedule

ROOT = Path(__file__).parents[2]
PICTURES = (
    ("inception", "gantt", "Inception-v3: 311 operators on two CPU cores and a GPU"),
    ("inception", "graph", "The same as a graph: which operator is where"),
    ("inception-tight", "memory", "Inception-v3 on devices with 118 MiB each"),
    ("four-stages", "gantt", "Training of 24 transformer layers as four stages"),
    ("four-stages", "memory", "Memory of the four stages"),
)
"""Problem, kind and title of each image."""


def main(folder: Path = ROOT / "docs" / "images") -> None:
    """Draw all images."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, kind, title in PICTURES:
        file = ROOT / "problems" / f"{name}.yaml"
        problem = po.load(file)
        schedule = po.read_plan(ROOT / "problems" / "plans" / f"{name}.json", problem).schedule
        bound = yaml.safe_load(file.read_text(encoding="utf-8"))["best_known"]["bound"]
        draw_schedule(problem, schedule, kind, title=title, bound=bound).write(folder / f"{name}-{kind}.png")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
