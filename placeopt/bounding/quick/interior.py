"""Dual prices of shared resources in an assignment program, by an interior-point method.

    minimise    sum_ic cost[i,c] x[i,c] + T
    subject to  sum_c x[i,c] = 1                                             (dual t[i])
                sum_i use[i,r] x[i,c(r)] + s[r] = size[r] T + limit[r]       (dual -u[r])
                x, s, T >= 0

Each resource r belongs to one class c(r); T is `top` in the code. Mehrotra's predictor-corrector method (S. Mehrotra,
"On the implementation of a primal-dual interior point method", SIAM Journal on Optimization 2 (1992),
doi:10.1137/0802028). The rows of the items do not overlap, so each iteration eliminates them and solves a system in the
resources only: O(n r^2) per iteration, some 10 to 25 iterations. Iterates stay dual feasible. A solver library would do
as well, but takes longer to import than this takes to run, and HiGHS takes longer to solve. Large products avoid BLAS
and LAPACK: on matrices of this size their threads cost more than they save, and the last digits would depend on the
number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placeopt.model.arrays import Float

ITERATIONS = 60
RUNAWAY = 1e9
"""Prices above this mean that the program is infeasible."""

TO_BOUNDARY = 0.99
"""Share of the distance to the boundary that a step covers."""


def dual_prices(
    cost: Float,  # (n, k)
    use: Float,  # (n, r)
    owner: NDArray[np.int64],  # (r,) the class c(r)
    size: Float,  # (r,) all 0 for a program without T
    limit: Float,  # (r,)
    allowed: NDArray[np.bool_],  # (n, k) the classes that each item may use; at least one
    gap: float,  # relative gap of primal and dual value at which to stop
) -> Float:
    """(r,) the prices u, optimal up to `gap`, or the best found; for good scaling, totals should be about 1."""
    loads = bool(size.any())
    open_ = allowed.astype(np.float64)
    use = use * open_[:, owner]
    # An interior starting point: items spread evenly, a large T, prices with positive slacks.
    x = open_ / open_.sum(axis=1, keepdims=True)
    taken = (use * x[:, owner]).sum(axis=0)
    top = 1.2 * max(float((taken[size > 0] / size[size > 0]).max(initial=0)), 1e-9) if loads else 0.0
    s = np.maximum(limit + size * top - taken, 0.1 * (limit + size * top) + 1e-9)
    u = np.where(size > 0, 0.9 / max(size.sum(), 1.0), 0.1)
    priced = cost + _by_class(use, u, owner, cost.shape)
    t = _cheapest(priced, allowed)
    t = t - 0.5 * max(float(np.abs(t).mean()), 1e-12)
    z = np.where(allowed, priced - t[:, None], 1.0)
    z_top = 1 - float(size @ u) if loads else 1.0
    best, best_value = u, -np.inf
    count = open_.sum() + len(u) + loads
    for _ in range(ITERATIONS):
        value = float(_cheapest(cost + _by_class(use, u, owner, cost.shape), allowed).sum() - limit @ u)
        if value > best_value:
            best, best_value = u, value
        total = float((x * z).sum() + s @ u) + top * z_top
        if total <= gap * abs(best_value) or u.max() > RUNAWAY:
            break
        theta, theta_s, theta_top = x / z, s / u, top / z_top
        spread = theta.sum(axis=1)
        g = use * theta[:, owner]
        matrix = theta_top * np.outer(size, size) - np.einsum("ir,is->rs", g, g / spread[:, None])
        matrix[np.diag_indices(len(u))] += theta_s
        for r, other in zip(*np.nonzero(owner[:, None] == owner), strict=True):
            matrix[r, other] += use[:, r] @ g[:, other]
        r_item = 1 - x.sum(axis=1)
        r_row = limit + size * top - s - (use * x[:, owner]).sum(axis=0)
        h, h_s, h_top = -x, -s, -top
        inverse = _inverse(matrix)
        for corrected in (False, True):
            rest = (r_item - h.sum(axis=1)) / spread
            right = (use * h[:, owner]).sum(axis=0) + h_s - size * h_top - r_row + np.einsum("ir,i->r", g, rest)
            du = np.einsum("rs,s->r", inverse, right)
            dt = rest + np.einsum("ir,r->i", g, du) / spread
            dz = np.where(allowed, _by_class(use, du, owner, cost.shape) - dt[:, None], 0.0)
            dx = (h - theta * dz) * open_
            ds = h_s - theta_s * du
            dz_top = -float(size @ du)
            d_top = h_top - theta_top * dz_top if loads else 0.0
            primal = min(_reach(x, dx), _reach(s, ds), _reach(np.array([top]), np.array([d_top])))
            dual = min(_reach(z, dz), _reach(u, du), _reach(np.array([z_top]), np.array([dz_top])))
            if not corrected:
                after = float(((x + primal * dx) * (z + dual * dz) * open_).sum() + (s + primal * ds) @ (u + dual * du))
                after += (top + primal * d_top) * (z_top + dual * dz_top)
                aim = total / count * (after / total) ** 3
                h = (aim - x * z - dx * dz) / z * open_
                h_s = (aim - s * u - ds * du) / u
                h_top = (aim - top * z_top - d_top * dz_top) / z_top if loads else 0.0
        if not np.isfinite(du).all():
            break
        x, s, top = x + primal * dx, s + primal * ds, top + primal * d_top
        u, t, z, z_top = u + dual * du, t + dual * dt, z + dual * dz, z_top + dual * dz_top
    return np.maximum(best, 0.0)


def _inverse(matrix: Float) -> Float:
    """The inverse of a positive definite matrix, by in-place Gauss-Jordan elimination."""
    inverse = matrix.copy()
    for j in range(len(inverse)):
        column = inverse[:, j].copy()
        row = inverse[j] / column[j]
        row[j] = 1 / column[j]
        column[j] = 0.0
        inverse[:, j] = 0.0
        inverse -= column[:, None] * row
        inverse[j] = row
    return inverse


def _by_class(use: Float, u: Float, owner: NDArray[np.int64], shape: tuple[int, ...]) -> Float:
    """(n, k) the priced use of each class's resources by each item."""
    priced = np.zeros(shape)
    for r, c in enumerate(owner.tolist()):
        priced[:, c] += use[:, r] * u[r]
    return priced


def _cheapest(priced: Float, allowed: NDArray[np.bool_]) -> Float:
    """(n,) the lowest price of each item over its allowed classes."""
    return np.asarray(np.where(allowed, priced, np.inf).min(axis=1))


def _reach(value: Float, step: Float) -> float:
    """The largest step length, at most 1, that keeps a positive vector positive."""
    falling = step < 0
    if not falling.any():
        return 1.0
    return min(1.0, TO_BOUNDARY * float((-value[falling] / step[falling]).min()))
