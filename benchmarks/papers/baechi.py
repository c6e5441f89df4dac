"""Baechi: m-TOPO, m-ETF and m-SCT.

B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke, Y. Meng, C. Xie, I. Gupta: Baechi: Fast Device Placement of Machine
Learning Graphs, SoCC 2020, doi:10.1145/3419111.3421302. `baechi_tables.py` measures.
"""

from __future__ import annotations

from functools import partial

import baechi_tables
from reports import Item, Paper, Report, Workplace
from shown import Claims

import placeopt as po


def part(_: Workplace, *, name: str) -> Report:
    """A part of `baechi_tables.py`."""
    report = Report()
    for each in baechi_tables.PARTS[name]():
        report.add(each)
    return report


def figure(workplace: Workplace, *, number: int) -> Report:
    """The cells of a worked example, and for figure 1 the schedule."""
    report = Report()
    for each in baechi_tables.figures():
        if isinstance(each, Claims):
            cells = [cell for cell in each.claims if cell.text.startswith(f"figure {number}")]
            report.claims("worked example", [cell for cell in cells if cell.paper != "-"])
            if further := [(cell.text, cell.ours) for cell in cells if cell.paper == "-"]:
                report.table("not in the figure", ("what", "here"), further)
    if number == 1:
        from placeopt.views.plots import draw_schedule

        problem = baechi_tables.figure_1(4)
        schedule = po.solve(problem, "m-sct").schedule
        picture = draw_schedule(problem, schedule, title="m-SCT with 4 units of memory on each device")
        picture.write(workplace.images / "baechi_figure_1.png")
        report.picture("baechi_figure_1.png", "The schedule of m-SCT in figure 1")
    return report


BEYOND = "beyond the paper: "

BAECHI = Paper(
    "baechi",
    "Baechi",
    "B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke, Y. Meng, C. Xie, I. Gupta, *Baechi: Fast Device Placement of "
    "Machine Learning Graphs*, SoCC 2020, doi:10.1145/3419111.3421302.",
    "The text at hand ends in section 3.3, so the step times of its evaluation are not known here. The item step-times "
    "has those that its authors measured with a later implementation "
    "([BaechiPyTorch](https://github.com/chiragcshetty/BaechiPyTorch)). "
    "[Baechi and Celeritas](baechi-celeritas.md) describes the solvers.",
    (
        Item("figure-1", "SCT and m-SCT with little memory", partial(figure, number=1), "1 second"),
        Item("figure-2", "the working example", None, why="a graph; figures 4 and 6 use it"),
        Item("figure-3", "co-placement", partial(figure, number=3), "1 second"),
        Item("figure-4", "operator fusion", partial(figure, number=4), "1 second"),
        Item("figure-5", "fusion without cycles", None, why="cases of the rule that figure-4 applies; tests/passes"),
        Item("figure-6", "fusion avoids transfers", partial(figure, number=6), "1 second"),
        Item("theorem-1", "ratio to the optimum", partial(part, name="theorem"), "1 minute"),
        Item("section-3.1", "post-adjustment of colocation groups", partial(part, name="adjust"), "5 minutes"),
        Item("step-times", "Inception-v3 and GNMT", partial(part, name="steps"), "1 minute"),
        Item("m-sct", BEYOND + "rules and favourites of m-SCT", partial(part, name="variants"), "5 minutes"),
        Item("assumption", BEYOND + "m-SCT under its assumption", partial(part, name="assumption"), "2 minutes"),
    ),
)
