"""How far from the optimum the schedules of ETF and SCT are at most, where that is proved.

With rho the longest transfer over the shortest duration, m devices, and all in the classical model (equal devices, no
limit of memory, rho <= 1: the SCT assumption):

    ETF                                2 + rho - 1/m                  Hwang, Chow, Anger, Lee 1989, doi:10.1137/0218016
    SCT, devices without number        beta = (2 + 2 rho) / (2 + rho)                    Hanen, Munier 1995
    SCT                                alpha = 1 + (1 - 1/m) beta
                                             = (4 + 3 rho) / (2 + rho) - (2 + 2 rho) / (m (2 + rho))

For rho = 1 and many devices: ETF 3, SCT 7/3.

beta is that of rounding at x = 1/2, Hanen and Munier's: what is no favourite has x >= 1/2 and takes k + c instead of at
least k + c/2 in the programme, (1 + rho) / (1 + rho/2) times as long at most. Baechi rounds at 0.1, where the same
argument gives (1 + rho) / (1 + rho/10) only, 20/11 for rho = 1 instead of 4/3. In general, for a threshold t,

    beta = (1 + rho) / (1 + min(t, 1/2) rho),

for what a repair drops above 1/2 has a rival with no smaller y, so x >= 1/2 itself.

m-SCT: theorem 1 of B. Jeon et al., "Baechi", SoCC 2020, doi:10.1145/3419111.3421302, whose proof goes so. All devices
have M bytes, task i needs d_i, and K = m M / sum d > 1. At most m / K devices are full and dropped at any time, so
m' = (K - 1) m / K are not; let the schedule be no longer than one of finite SCT on these. That is (Hanen, Munier)

    T <= 1/m' sum k + (1 - 1/m') w,    w the makespan of SCT without a limit of devices            (equation 3)

and with sum k <= m OPT and w <= beta OPT

    T / OPT <= K / (K - 1) + (1 - K / ((K - 1) m)) beta                                            (equation 4)
             = alpha + (1 / (K - 1)) (1 - beta / m),

since K / (K - 1) - 1 = 1 / (K - 1) and (1 - K / ((K - 1) m)) - (1 - 1/m) = -1 / ((K - 1) m). For rho = 1 and many
devices: 7/3 + 1 / (K - 1).

What the paper's proof takes for granted: that devices are dropped only when full to the last byte, that m' is a whole
number of at least one device, and that a schedule with more devices for some of the time is no longer. It is given here
for what it is, and only where m' >= 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placeopt.bounding.sct.programme import link_kinds
from placeopt.model.problem import UNLIMITED, Problem


@dataclass(frozen=True, slots=True)
class Ratios:
    """What is proved of a problem's schedules by the classics.

    Attributes
    ----------
    rho
        Longest transfer between any two devices over the shortest duration on any that may run the task; None where a
        task takes no time but a transfer does: infinite.
    assumption
        Whether rho <= 1.
    etf, sct_infinite, sct, m_sct
        Makespan over the optimum, at most (and up to the tolerance of the programme); None where the theorem does not
        apply: devices differ, tasks are bound to some, to each other, apart or to times, transfers wait for ports,
        memory is limited (but for `m_sct`), or the assumption fails.
    """

    rho: Fraction | None
    assumption: bool
    etf: Fraction | None = None
    sct_infinite: Fraction | None = None
    sct: Fraction | None = None
    m_sct: Fraction | None = None


def ratios_of(problem: Problem, threshold: float = 0.5) -> Ratios:
    """The ratios that hold for a problem, with favourites where x is below the threshold; the papers have 1/2."""
    rho = _rho(problem)
    assumption = rho is not None and rho <= 1
    if rho is None or not assumption or not _classical(problem):
        return Ratios(rho, assumption)
    m = problem.n_devices
    beta = (1 + rho) / (1 + min(Fraction(str(threshold)), Fraction(1, 2)) * rho)
    alpha = 1 + (1 - Fraction(1, m)) * beta
    room, need = int(problem.capacity[0]), int(problem.memory.sum())
    if room == UNLIMITED or need == 0:
        return Ratios(rho, assumption, 2 + rho - Fraction(1, m), beta, alpha, alpha)
    plenty = Fraction(m * room, need)
    limited = None
    if plenty > 1 and (plenty - 1) * m / plenty >= 1:
        limited = alpha + (1 - beta / m) / (plenty - 1)
    return Ratios(rho, assumption, m_sct=limited)


def _rho(problem: Problem) -> Fraction | None:
    if problem.n_tasks == 0 or problem.n_edges == 0 or problem.n_devices < 2:
        return Fraction(0)
    longest = max(
        int(problem.transfer(problem.payload, source, target).max()) for source, target, _ in link_kinds(problem)
    )
    shortest = int(np.where(problem.feasible, problem.duration, UNLIMITED).min())
    if longest == 0:
        return Fraction(0)
    return None if shortest == 0 else Fraction(longest, shortest)


def _classical(problem: Problem) -> bool:
    """Whether devices are equal and nothing but precedence and memory binds tasks."""
    return bool(
        problem.n_devices > 0
        and problem.objective.single == "makespan"
        and problem.contention == "none"
        and problem.memory_model == "sum"
        and (problem.device_class == 0).all()
        and problem.feasible.all()
        and problem.n_groups == problem.n_tasks
        and len(problem.separation) == 0
        and not problem.release.any()
        and (problem.deadline == UNLIMITED).all()
    )
