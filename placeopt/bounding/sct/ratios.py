"""Approximation ratios of ETF, SCT and m-SCT: the proved ones, and that of Baechi's theorem 1 for limited memory.

Let rho be the longest transfer time over the shortest duration, and m the number of devices. In the classical model
(identical devices, no memory limit) under the SCT assumption rho <= 1:

    ETF                       2 + rho - 1/m                  Hwang, Chow, Anger, Lee 1989, doi:10.1137/0218016
    SCT, unlimited devices    beta = (2 + 2 rho) / (2 + rho)                       Hanen, Munier 1995
    SCT                       alpha = 1 + (1 - 1/m) beta
                                    = (4 + 3 rho) / (2 + rho) - (2 + 2 rho) / (m (2 + rho))

For rho = 1 and many devices: ETF 3, SCT 7/3.

beta is for Hanen and Munier's rounding at x = 1/2. An edge that is not a favourite has x >= 1/2. It takes k + c instead
of at least k + c/2 in the program, so it is at most (1 + rho) / (1 + rho/2) times as long. Baechi rounds at 0.1, for
which the same argument gives only (1 + rho) / (1 + rho/10): 20/11 for rho = 1 instead of 4/3. In general, for a
threshold t,

    beta = (1 + rho) / (1 + min(t, 1/2) rho),

because an edge dropped by the repair above 1/2 has a rival with no smaller y, hence x >= 1/2 itself.

**m-SCT**: theorem 1 of B. Jeon et al., "Baechi", SoCC 2020, doi:10.1145/3419111.3421302. Its proof: let all devices
have M bytes, let task i need d_i, and let K = m M / sum d > 1. At any time at most m / K devices are full and dropped,
so m' = (K - 1) m / K remain. Let the schedule be no longer than one of SCT on m' devices, that is (Hanen, Munier)

    T <= 1/m' sum k + (1 - 1/m') w,    w the makespan of SCT on unlimited devices                  (equation 3)

With sum k <= m OPT and w <= beta OPT this gives

    T / OPT <= K / (K - 1) + (1 - K / ((K - 1) m)) beta                                            (equation 4)
             = alpha + (1 / (K - 1)) (1 - beta / m),

since K / (K - 1) - 1 = 1 / (K - 1) and (1 - K / ((K - 1) m)) - (1 - 1/m) = -1 / ((K - 1) m). For rho = 1 and many
devices: 7/3 + 1 / (K - 1).

The paper's proof assumes that devices are dropped only when completely full, that m' is an integer of at least 1, and
that more devices for part of the time never make a schedule longer. A device that lacks memory for the next task is not
completely full: if it is dropped (`closing` of `m-sct`), there are schedules beyond the ratio. If it stays open, as by
default and in the released code, none is known, but a dead end may lead to one: then tasks are moved or packed, which
the proof does not consider. The ratio is therefore reported as the paper's, for m' >= 1, and not as a bound, unless
each device has room for all tasks. tests/solvers/test_m_sct.py has an example of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placeopt.bounding.sct.program import link_kinds
from placeopt.model.problem import UNLIMITED, Problem


@dataclass(frozen=True, slots=True)
class Ratios:
    """The proved approximation ratios of a problem's schedules."""

    # Longest transfer time between any two devices over the shortest duration on any feasible device; None if infinite,
    # because a task takes no time but a transfer does
    rho: Fraction | None
    assumption: bool  # whether rho <= 1
    # Upper bounds of makespan over optimum (up to the tolerance of the program). None if the theorem does not apply:
    # devices differ; tasks are bound to devices, to each other, apart or to times; ports contend; a device has no room
    # for all tasks; or the assumption fails. `m_sct` is that of theorem 1 also with less memory, where it may be
    # exceeded.
    etf: Fraction | None = None
    sct_infinite: Fraction | None = None
    sct: Fraction | None = None
    m_sct: Fraction | None = None


def ratios_of(problem: Problem, threshold: float = 0.5) -> Ratios:
    """The ratios that hold for a problem, with favourites for x below the threshold; the papers use 1/2."""
    rho = _rho(problem)
    assumption = rho is not None and rho <= 1
    if rho is None or not assumption or not _classical(problem):
        return Ratios(rho, assumption)
    m = problem.n_devices
    beta = (1 + rho) / (1 + min(Fraction(str(threshold)), Fraction(1, 2)) * rho)
    alpha = 1 + (1 - Fraction(1, m)) * beta
    room, need = int(problem.capacity[0]), int(problem.memory.sum())
    if room >= need:
        return Ratios(rho, assumption, 2 + rho - Fraction(1, m), beta, alpha, alpha)
    plenty = Fraction(m * room, need)
    limited = None
    if plenty > 1 and (plenty - 1) * m / plenty >= 1:
        limited = alpha + (1 - beta / m) / (plenty - 1)
    return Ratios(rho, assumption, m_sct=limited)


def _rho(problem: Problem) -> Fraction | None:
    transfers = [problem.transfer(problem.payload, source, target) for source, target, _ in link_kinds(problem)]
    longest = max((int(ticks.max(initial=0)) for ticks in transfers), default=0)
    if longest == 0:
        return Fraction(0)
    shortest = int(np.where(problem.feasible, problem.duration, UNLIMITED).min())
    return None if shortest == 0 else Fraction(longest, shortest)


def _classical(problem: Problem) -> bool:
    """Whether devices are identical and tasks have no constraints except precedence and memory."""
    return bool(
        problem.n_devices > 0
        and problem.objective.single == "makespan"
        and not problem.contends
        and problem.memory_model == "sum"
        and not problem.rules
        and (problem.device_class == 0).all()
        and problem.feasible.all()
        and problem.n_groups == problem.n_tasks
        and len(problem.separation) == 0
        and not problem.release.any()
        and (problem.deadline == UNLIMITED).all()
    )
