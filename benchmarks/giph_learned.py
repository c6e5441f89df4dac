"""Train GiPH, its variants and its rivals, and compare the paper's figures and tables with ours.

    python benchmarks/giph_learned.py FOLDER [PART ...] [--cases 150] [--seeds 3] [--images docs/images]

Y. Hu et al.: GiPH, MLSys 2023, arXiv:2305.14562. FOLDER keeps trained policies and results: a run that is stopped goes
on where it was, and parts may be run one by one. All parts take some hours on one core. Policies have the paper's
parameters (200 episodes, REINFORCE, Adam with rate 0.01, gamma 0.97); the weights are the best on the validation part
of the set, of --seeds trainings each. All searches of a case make 2 |V| steps from the same random placement. The SLR
is the makespan of the best placement, without noise, divided by the longest path of least durations. Differences are
paired by case. `giph_paper.py` has the paper's numbers, and defines the intervals and the verdict of each claim.

convergence   figures 14 and 15: validation SLR against episodes, with and without the start-time potential
steps, noisy  figure 4: SLR against steps, on a single and on multiple networks, without noise and with 20 %; on unseen
              networks as the headline, on the released split for comparison
depth         figure 5: SLR against depth of the graph
table6        table 6: share of cases on which one policy is better than, equal to or worse than another
table7        table 7 and figure 17: seconds for each sample in training and in use
changes       figure 6: networks that lose and get devices (giph_adaptivity.py)
learning      figure 7: deep-learning graphs of 40 groups on 8 devices; how often tasks move
traffic       figure 9: the case study, sensor fusion of connected vehicles
objectives    figures 11 and 16: relocation, energy, total cost (giph_objectives.py)
rnn           the RNN placer of section 5, trained again on each of RNN_CASES cases
noise         not in the paper: noise from 0 to 0.5
order         not in the paper: the variants after a training with a less noisy gradient
features      not in the paper: GiPH without the start-time potential, with that of the released code, with two more
faults        not in the paper: what the faults of the released code change
packaged      the policies that come with placeopt, one training each, with --seeds seeds of the search
networks      not in the paper: the main differences, with intervals for new networks
beyond        not in the paper: a shared baseline of episodes from one placement; features of the execution
seconds       not in the paper: the solver giph beside other searches with equal time limits, on an idle machine
"""

from __future__ import annotations

import argparse
from pathlib import Path

from giph_further import FurtherParts
from giph_parts import PaperParts
from giph_results import console, shown
from giph_runs import Store


class Evaluation(PaperParts, FurtherParts):
    """All parts."""


PARTS = (
    "convergence", "steps", "noisy", "depth", "table6", "table7", "changes", "learning", "traffic", "objectives", "rnn",
    "noise", "features", "order", "faults", "packaged", "seconds", "beyond", "networks",
)  # fmt: skip


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="policies and results, created if absent")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--cases", type=int, default=150, help="test cases of each set")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each policy")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write all tables to FILE as well")
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="folder for the figures; no figures by default")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]}; expected one of {', '.join(PARTS)}")
    store = Store(arguments.folder, lambda text: console.print(f"[dim]{text}[/]"))
    evaluation = Evaluation(store, arguments.cases, arguments.seeds, arguments.images)
    for part in arguments.parts or PARTS:
        getattr(evaluation, part)()
    if arguments.markdown is not None:
        arguments.markdown.write_text("\n\n".join(shown) + "\n")


if __name__ == "__main__":
    main()
