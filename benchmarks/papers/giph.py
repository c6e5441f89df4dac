"""GiPH: learned search.

Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong: GiPH, MLSys 2023,
arXiv:2305.14562.

All searches of a case make 2 |V| steps from the same random placement. Policies have the paper's parameters (200
episodes, REINFORCE, Adam with rate 0.01, gamma 0.97); the weights are the best on the validation part of the set. The
SLR is the makespan of the best placement, without noise, divided by the longest path of least durations. Differences
are paired by case. `giph_parts.py` and `giph_further.py` have the experiments, `giph_paper.py` the published numbers,
intervals and verdicts, `giph_runs.py` the policies and episodes that the folder keeps. Policies and episodes are kept
when the code changes: delete the folder to train again.
"""

from __future__ import annotations

from functools import partial

from reports import Item, Paper, Report, Workplace, collected


def run(workplace: Workplace, *, parts: tuple[str, ...], pictures: tuple[tuple[str, str], ...] = ()) -> Report:
    """The report of experiments, by the names of their methods, and of the pictures that they write."""
    from giph_further import FurtherParts
    from giph_parts import PaperParts
    from giph_runs import Store

    class Evaluation(PaperParts, FurtherParts):
        """All experiments."""

    kept = workplace.measurements
    store = Store(kept.folder, lambda text: workplace.console.print(f"[dim]{text}[/]"), kept.version, kept.used)
    files = [file for file, _ in pictures]
    evaluation = Evaluation(store, workplace.cases, workplace.seeds, workplace.images, files)

    def experiments() -> None:
        for part in parts:
            getattr(evaluation, part)()

    report = collected(experiments)
    for file, description in pictures:
        report.picture(file, description)
    return report


def item(name: str, title: str, duration: str, *parts: str, kept: str = "", **pictures: str) -> Item:
    """An item of some experiments; pictures by file, with underscores for hyphens."""
    named = tuple((f"giph-learned-{file.replace('_', '-')}.png", what) for file, what in pictures.items())
    return Item(name, title, partial(run, parts=parts, pictures=named), duration, kept=kept or f"takes {duration}")


BEYOND = "beyond the paper: "

GIPH = Paper(
    "giph",
    "GiPH",
    "Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong, *GiPH: "
    "Generalizable Placement Learning for Adaptive Heterogeneous Computing*, MLSys 2023, arXiv:2305.14562.",
    "Problems are those of the released code, bit for bit, or models of data that were not released (traffic, deep "
    "learning graphs). Intervals are 95 %, for new problems and new trainings. [Learned search](learned.md) describes "
    "the policies.",
    (
        Item("figure-1", "gpNet of an example", None, why="an illustration; tests/learning builds gpNet from the text"),
        Item("figure-2", "the search as a Markov decision process", None, why="an illustration"),
        Item("figure-3", "the network", None, why="an illustration; tests/learning compares it with the text"),
        item("figure-4", "SLR against search steps, unseen networks", "30 minutes", "steps",
             **{"steps_giph_unseen_0.0": "SLR against search steps on unseen networks"}),
        item("figure-4-multiple", "the same on the networks of the training", "5 minutes after figure-4",
             "steps_multiple"),
        item("figure-4-single", "the same on one network", "30 minutes", "steps_single"),
        item("figure-4-noise", "the same with noise of 20 %", "1 hour", "noisy"),
        item("figure-5", "SLR against the depth of the graph", "1 minute after figure-4", "depth"),
        item("figure-6", "SLR on changing networks", "1 hour", "changes",
             adaptivity="SLR after changes of the network"),
        item("figure-7", "deep learning graphs", "30 minutes", "learning",
             **{"steps_enas_0.0": "SLR against search steps on deep learning graphs"}),
        Item("figure-8", "the simulated traffic", None, why="a picture of the town; ours is a model"),
        item("figure-9", "case study: sensor fusion of connected vehicles", "40 minutes", "traffic",
             **{"steps_traffic_0.0": "SLR against search steps in the case study"}),
        Item("figure-10", "a deployment", None, why="a photograph"),
        item("figure-11", "relocation cost; energy", "20 minutes", "relocation_and_energy"),
        Item("figure-12", "example task graphs", None, why="the released generator is repeated bit for bit"),
        Item("figure-13", "a cell of ENAS", None, why="an example; the set enas has cells of this kind"),
        item("figure-14", "convergence of the training; figure 15, without the start-time potential", "2 hours",
             "convergence", convergence_giph_multiple_paper="SLR during the training on ten networks"),
        item("figure-16", "total cost", "10 minutes", "total_cost"),
        Item("table-1", "durations on three types of devices", None, why="data of the case study, used by figure-9"),
        Item("table-2", "relocation overheads", None, why="data of the case study, used by figure-11"),
        Item("table-4", "dimensions; table 5, layers", None, why="tests/learning compares the network with it"),
        item("table-6", "pairs of variants", "1 hour", "table6"),
        item("table-7", "seconds for each sample; figure 17", "10 minutes", "table7", kept="measures CPU seconds"),
        item("rnn", "section 5: the RNN placer, trained on each problem", "1 hour", "rnn"),
        item("order", BEYOND + "the variants after a training with a less noisy gradient", "2 hours", "order"),
        item("stopping", "section 6: the stopping criterion", "1 minute after figure-4", "stopping"),
        item("noise", BEYOND + "noise from 0 to 0.5", "1 hour", "noise"),
        item("features", BEYOND + "GiPH with fewer and more features", "1 hour", "features"),
        item("faults", BEYOND + "what the faults of the released code change", "2 hours", "faults"),
        item("packaged", BEYOND + "the policies that come with placeopt", "30 minutes", "packaged"),
        item("networks", BEYOND + "the main differences, with intervals for networks", "1 minute after order",
             "networks"),
        item("training", BEYOND + "a shared baseline of episodes from one placement", "1 hour", "beyond"),
        item("seconds", BEYOND + "the solver giph and other searches with equal time limits, on an idle machine",
             "20 minutes", "seconds", kept="searches have time limits"),
    ),
    ("seeds", "cases"),
)  # fmt: skip
