"""The linear programme of Small Communication Times: favourites, ratios, and a bound.

    programme     what the programme is, and that of the paper for a problem          `programme_of`
    solution      solving it to a tolerance, with a proof                             `solution_of`
    favourites    which of the many optima, and its favourite children and parents    `favourites_of`
    ratios        rho, and what is proved of ETF, SCT and m-SCT                       `ratios_of`
    bound         a programme of the same form that bounds the makespan               `sct_bound`

How it is solved: exact reductions (`core`, `symmetry`), then GLOP where little is left (`engine`), else a game
(`game`) whose plays are turned into points and proofs (`proof`).
"""

from __future__ import annotations

from placeopt.bounding.sct.bound import certain, sct_bound
from placeopt.bounding.sct.favourites import Favourites, favourites_of
from placeopt.bounding.sct.programme import Programme, programme_of
from placeopt.bounding.sct.ratios import Ratios, ratios_of
from placeopt.bounding.sct.solution import Solution, solution_of

__all__ = [
    "Favourites",
    "Programme",
    "Ratios",
    "Solution",
    "certain",
    "favourites_of",
    "programme_of",
    "ratios_of",
    "sct_bound",
    "solution_of",
]
