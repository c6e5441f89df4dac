"""chains: an exact dynamic program for pipelines whose layers form a chain, for thousands of layers and heterogeneous
devices.

It searches the least period by bisection. For a period, it fills a table over vectors of used devices by class, from
the end of the chain; `_chain_search` states what it keeps for each vector, and the proofs. The table has
prod(n_c + 1) vectors for n_c devices of class c: 83,521 for four classes of 16 devices, but 2^64 for 64 unlike
devices. With more than `vectors`, prices of devices prove a bound (the linear program of paths with a limit for each
class), and a beam keeps the states that waste least at these prices. Beams grow up to `width`. A beam that leaves no
state out is a proof, too. On 1,000 layers and 64 devices of 8 or 64 classes (`benchmarks/pipeline_chains.py`), some
gaps are closed and most others are below a thousandth. They are larger where transfers dominate (below 1%) or memory is
tight (3%, with 1f1b a fifth).

Every output must go to the next layer only, and in training, every gradient to the previous layer; tasks that must
share a stage are one layer. Links may differ between classes of devices. All rules of pipelines with one stage per
device are supported: teams, synchronisation, runs under way, recomputation, memory, and transfers of any kind.

Departures from PipeDream (Narayanan et al. 2019, section 3.1): the period is searched instead of minimised in the
table, devices are counted by class, and no hierarchy of links is assumed.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options, Settings, Termination
from placeopt.protocol.citations import bibtex
from placeopt.simulation.pipelines import periodic_schedule

from .._runs.solve_run import SolveRun, nothing_to_place
from ._chains.chain import chain_of, path_of
from ._chains.division import Bisection, Divider, Piece, division_of
from ._shared.assessment import assessed, pipeline_info, proved_period
from ._shared.contraction import contracted

NARROW = 32
"""Width of the first beam."""

STEPS = 150
"""Changes of prices for each period that a proof tries."""


class ChainsSettings(Settings):
    """Settings of chains."""

    vectors: int = Field(default=2_000_000, ge=1)
    """Maximum number of vectors of used devices in a table, times the contexts that heterogeneous links need. Above,
    beams are used."""

    width: int = Field(default=2048, ge=1)
    """Maximum number of states of a beam for each number of used devices."""


class Chains:
    """Divides chains into stages."""

    name: ClassVar[str] = "chains"
    info: ClassVar[Info] = pipeline_info(
        summary="dynamic program for chains of layers on classes of devices (PipeDream, generalised)",
        guarantee="optimal for chains and few classes of devices",
        complexity="O(log P v c r) for v vectors of used devices, c classes and teams of r",
        citation=bibtex("narayanan2019pipedream"),
    )
    settings_type: ClassVar[type[Settings]] = ChainsSettings

    def solve(self, problem: Problem, options: Options, settings: ChainsSettings) -> Answer:
        """Return the best division into stages."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        run = SolveRun(problem, options)
        nodes = contracted(problem)
        order = path_of(problem, nodes)
        if order is None:
            return run.refusal("the tasks do not form a chain of layers, each connected with the next only; use ideals")
        divider = Divider(chain_of(problem, nodes, order), settings.vectors, run.stopped)

        def offer(pieces: list[Piece]) -> None:
            division = division_of(problem, nodes, order, divider, pieces)
            if assessed(problem, division.device, division.stages) is not None:
                run.best.offer(periodic_schedule(problem, division.device, division.stages))

        contiguous = problem.pipeline is not None and problem.pipeline.contiguous
        bisection = Bisection(divider, offer, run.best.raise_bound if contiguous else None)
        run.stats = {"layers": nodes.count, "vectors": divider.vectors, "table": divider.complete}
        bisection.start()
        width = min(NARROW, settings.width)
        while not bisection.infeasible and not bisection.closed and not run.stopped():
            bisection.search(partial(divider.beam, width=width))
            if divider.complete or width == settings.width:
                break
            bisection.prove(STEPS)
            width = min(8 * width, settings.width)
        if divider.complete and not bisection.infeasible:
            bisection.search(divider.table)
        if run.stopped() and not bisection.closed and not bisection.infeasible:
            return run.ended(run.stop_reason() or Termination.TIME_LIMIT)
        if not contiguous:
            return run.ended(
                Termination.COMPLETED if run.best.schedule is not None else Termination.FAILED,
                "devices may have several stages: this is the best division into one stage for each",
            )
        if bisection.infeasible:
            return run.ended(Termination.INFEASIBLE, "no division into stages satisfies all constraints")
        if bisection.closed:
            return proved_period(run, bisection.low)
        why = f"the devices have {divider.vectors:,} vectors of used devices: only some were searched"
        return run.ended(Termination.COMPLETED if run.best.schedule is not None else Termination.FAILED, why)
