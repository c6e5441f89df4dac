"""The least time that devices need for all the work: a linear program, bounded exactly by its dual.

Items i (colocation groups) are divided over classes c of size[c] devices:

    minimise    T, the load of the busiest device; or the sum of amount[i,c] x[i,c]
    subject to  sum_c x[i,c] = 1                                    every item
                sum_i amount[i,c] x[i,c] <= size[c] T               every class                       price w[c]
                sum_i memory[i] x[i,c] <= size[c] capacity[c]       every class with a capacity       price v[c]

Every feasible placement satisfies these rows. For any prices w, v >= 0, the rows times their prices add up to

    T sum_c size[c] w[c] >= sum_i min_c (w[c] amount[i,c] + v[c] memory[i]) - sum_c v[c] size[c] capacity[c]

(for the sum: w = 1, without T). *Any* integer prices thus prove a bound, which is evaluated in integers. Floating point
is used only to find good prices; its accuracy affects only the quality of the bound. One class needs no prices. For two
classes without memory, the best prices are those of the item that the optimum splits. Otherwise an interior-point
method (`placeopt.bounding.quick.interior`) gets within six digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.bounding.quick.classes import Classes, Subset, by_group, by_row, least, row_minima, selected, subsets
from placeopt.bounding.quick.interior import dual_prices
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED

SAMPLE = 2000
"""Maximum number of items in the program for prices; of more items, the largest half of this number and a sample of the
rest."""

EXACT_GAP, SAMPLED_GAP = 1e-8, 1e-3
"""Relative gaps for the prices of all items, and of a sample."""

SUBSETS = 8
"""Maximum number of subsets of devices to try, those with the most work per device."""

BITS = 60
"""Sums of 64-bit integers stay below 2**BITS."""


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """The program above."""

    amount: Int  # (i, k) ticks (or nanojoules) of an item on a class
    memory: Int  # (i,) bytes of an item
    allowed: Bool  # (i, k), whether the item may use the class; every item may use one
    # (k,) devices of each class, and bytes of each device
    size: Int
    capacity: Int
    loads: bool = True  # whether to minimise the load of the busiest device, or the sum of all amounts


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Integer prices."""

    amount: Int  # (k,) w; all equal for the sum
    memory: Int  # (k,) v for 2**shift bytes, 0 for classes without a capacity
    # Memory is counted in units of 2**shift bytes, rounded down. A placement within the capacities is within them in
    # these units too.
    shift: int = 0

    def scale(self, sharing: Sharing) -> int:
        """The factor of T, or of the sum, in the inequality that these prices prove."""
        each = zip(self.amount.tolist(), sharing.size.tolist(), strict=True)
        return sum(price * devices for price, devices in each) if sharing.loads else int(self.amount[0])

    def memory_worth(self, sharing: Sharing) -> int:
        """The worth of all the memory at these prices."""
        each = zip(self.memory.tolist(), sharing.size.tolist(), sharing.capacity.tolist(), strict=True)
        return sum(price * devices * (capacity >> self.shift) for price, devices, capacity in each)


def sharing_of(classes: Classes, subset: Subset, amount: Int, *, loads: bool) -> Sharing:
    """The program of the groups that are confined to a subset of the classes; `amount` is (n, k), per task."""
    groups, members = subset.groups, subset.members
    return Sharing(
        amount=selected(by_group(classes.problem, amount, np.add), groups, members),
        memory=selected(classes.group_memory, groups),
        allowed=selected(classes.allowed, groups, members),
        size=classes.size[members],
        capacity=classes.capacity[members],
        loads=loads,
    )


def busiest(classes: Classes) -> list[Subset]:
    """The subsets with the most work per device, all devices last.

    Of subsets that confine the same work, only the one with the fewest devices counts.
    """
    group_work = least(by_group(classes.problem, classes.busy, np.add), classes.allowed)
    busy = group_work > 0
    *some, everything = subsets(classes)
    work = [float(group_work[subset.groups].sum()) / classes.size[subset.members].sum() for subset in some]
    ranked: dict[bytes, Subset] = {}
    for i in sorted(range(len(some)), key=lambda i: (-work[i], i)):
        if work[i] > 0:
            ranked.setdefault((some[i].groups & busy).tobytes(), some[i])
    return [*list(ranked.values())[: SUBSETS - 1], everything]


def pigeonhole(amounts: Int, count: int) -> int:
    """The least amount in the fullest of `count` places: of the k count + 1 largest amounts, some place has k + 1.

    The maximum over k of the sum of the k + 1 smallest among them.
    """
    if len(amounts) == 0:
        return 0
    ordered = np.sort(amounts)[::-1]
    total = np.concatenate(([0], np.cumsum(ordered)))
    k = np.arange((len(ordered) - 1) // count + 1)
    return int((total[k * count + 1] - total[k * count - k]).max())


def best_price_bound(sharing: Sharing, tried: Sequence[Prices] | None = None) -> Fraction:
    """The best bound that these prices prove, by default the candidates; 0 without any."""
    found = Fraction(0)
    for prices in candidate_prices(sharing) if tried is None else tried:
        total = int(weights(sharing, prices).sum())
        found = max(found, Fraction(total - prices.memory_worth(sharing), prices.scale(sharing)))
    # Every placement costs at most this, so a larger bound would only mean that none is feasible.
    return min(found, Fraction(sum(sharing.amount.max(axis=1, initial=0).tolist())))


def weights(sharing: Sharing, prices: Prices) -> NDArray[Any]:
    """(i,) the least cost of every item at these prices: int64, or Python integers if these are too small."""
    memory, amount = sharing.memory >> prices.shift, sharing.amount
    price, memory_price = prices.amount, prices.memory
    most = float(amount.max(axis=1, initial=0).astype(np.float64).sum()) * float(price.max())
    most += float(memory.astype(np.float64).sum()) * float(memory_price.max())
    large = most >= 2.0 ** (BITS + 1)
    if large:
        memory, amount, price, memory_price = (each.astype(object) for each in (memory, amount, price, memory_price))
    above = 1 << (200 if large else 62)  # above every price

    def priced(block: slice) -> NDArray[Any]:
        found: NDArray[Any] = amount[block] * price
        if memory_price.any():
            found += memory[block, None] * memory_price
        found[~sharing.allowed[block]] = above
        return row_minima(found)

    return priced(slice(None)) if large else by_row(amount.shape, priced)


def candidate_prices(sharing: Sharing) -> list[Prices]:
    """Prices to try; the best of them prove nearly the optimum of the program."""
    if not len(sharing.memory):
        return []
    if not sharing.loads:
        return _prices_to_try(sharing)
    # Items that need neither time nor memory cost nothing at any prices. Classes that no other item may use only add to
    # the factor of T, so their best price is 0.
    items = (least(sharing.amount, sharing.allowed) > 0) | (sharing.memory > 0)
    used: Bool = np.asarray(selected(sharing.allowed, items).any(axis=0))
    part = replace(
        sharing,
        amount=selected(sharing.amount, items, used),
        memory=selected(sharing.memory, items),
        allowed=selected(sharing.allowed, items, used),
        size=sharing.size[used],
        capacity=sharing.capacity[used],
    )
    return [_padded(prices, used) for prices in _prices_to_try(part)] if items.any() else []


def _padded(prices: Prices, used: Bool) -> Prices:
    """Prices of the used classes as prices of all classes, 0 for the others."""
    amount, memory = np.zeros((2, len(used)), dtype=np.int64)
    amount[used], memory[used] = prices.amount, prices.memory
    return Prices(amount, memory, prices.shift)


def _prices_to_try(sharing: Sharing) -> list[Prices]:
    k = len(sharing.size)
    none = np.zeros(k, dtype=np.int64)
    tried = [Prices(np.ones(k, dtype=np.int64), none)]
    limited = (sharing.capacity != UNLIMITED) & (sharing.capacity > 0)
    if limited.any() and sharing.memory.any():
        tried.append(_interior_prices(sharing, limited))
    elif k > 2 and sharing.loads:
        tried.append(_interior_prices(sharing, none > 0))
    elif k == 2 and sharing.loads:
        tried += [Prices(np.array(pair), none) for pair in _split_prices(sharing)]
    return [prices for prices in tried if prices.scale(sharing) > 0]


def _split_prices(sharing: Sharing) -> list[tuple[int, int]]:
    """Prices for two classes, the optimal ones among them.

    An optimum assigns items to the first class in the order of amount[i,0] / amount[i,1] until both classes are equally
    busy, and splits one item. Prices inversely proportional to that item's amounts make it indifferent and keep all
    other items in place: by complementary slackness they are optimal.
    """
    either = np.flatnonzero(sharing.allowed.all(axis=1))
    first, second = sharing.amount[either].T
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.nan_to_num(first / second, nan=0.0), kind="stable")
    first, second = first[order], second[order]
    alone = [int(sharing.amount[sharing.allowed[:, c] & ~sharing.allowed[:, 1 - c], c].sum()) for c in (0, 1)]
    busy = (alone[0] + np.cumsum(first)) / float(sharing.size[0])
    left = (alone[1] + second.sum() - np.cumsum(second)) / float(sharing.size[1])
    found = [(1, 0), (0, 1)]
    split = int(np.searchsorted(busy >= left, True))
    found += [(int(second[i]), int(first[i])) for i in range(split - 1, split + 2) if 0 <= i < len(either)]
    return found


def _interior_prices(sharing: Sharing, limited: Bool) -> Prices:
    """Integer prices from the interior-point method; memory has a price in the `limited` classes."""
    amount, memory, allowed = _sampled(sharing)
    gap = EXACT_GAP if len(memory) == len(sharing.memory) else SAMPLED_GAP
    size = sharing.size.astype(np.float64)
    unit = float(np.where(allowed, amount, np.inf).min(axis=1).sum())
    unit = max(unit / (float(size.sum()) if sharing.loads else 1.0), 1e-9)
    owners = np.flatnonzero(limited)
    memory_worth = size[owners] * sharing.capacity[owners].astype(np.float64)
    use, owner, gains, limits = memory[:, None] / memory_worth, owners, np.zeros(len(owners)), np.ones(len(owners))
    cost, k = amount / unit, 0
    if sharing.loads:
        use, k = np.hstack((cost, use)), len(size)
        owner = np.concatenate((np.arange(k), owners))
        gains, limits = np.concatenate((size, gains)), np.concatenate((np.zeros(k), limits))
        cost = np.zeros_like(amount)
    with np.errstate(all="ignore"):  # an infeasible program may overflow; any prices are valid
        prices = dual_prices(cost, use, owner, gains, limits, allowed, gap)
    w = prices[:k] if sharing.loads else np.ones(len(size))
    return _rounded(sharing, w, owners, prices[k:] * unit / memory_worth)


def _rounded(sharing: Sharing, w: NDArray[np.float64], owners: Int, v: NDArray[np.float64]) -> Prices:
    """Integers proportional to float prices, as large as 64-bit sums allow."""
    top = max(float(w.max()), 1e-300)
    w, v = w / top, v / top
    largest = float(sharing.amount.max(axis=1).astype(np.float64).sum())
    largest += float(sharing.memory.astype(np.float64).sum()) * float(v.max(initial=0.0))
    scale = float(np.clip(2.0**BITS / max(largest, 1.0), 2.0**16, 2.0**40))
    shift = max(int(sharing.memory.max()).bit_length() + len(sharing.memory).bit_length() - 32, 0)
    memory = np.zeros(len(w), dtype=np.int64)
    memory[owners] = np.rint(np.minimum(v * scale * 2.0**shift, 2.0**BITS)).astype(np.int64)
    return Prices(np.rint(w * scale).astype(np.int64), memory, shift)


def _sampled(sharing: Sharing) -> tuple[NDArray[np.float64], NDArray[np.float64], Bool]:
    """Amounts, memory and classes of all items, or of the largest ones and an even sample that represents the rest."""
    memory = sharing.memory.astype(np.float64)
    if len(memory) <= SAMPLE:
        # By columns, which the method works on: its sums, hence their last digits, follow the order in memory.
        return np.asfortranarray(sharing.amount, dtype=np.float64), memory, np.asfortranarray(sharing.allowed)
    fastest = least(sharing.amount, sharing.allowed).astype(np.float64)
    weight = fastest / max(float(fastest.sum()), 1.0) + memory / max(float(memory.sum()), 1.0)
    least_big = np.partition(weight, -SAMPLE // 2)[-SAMPLE // 2]
    big = np.flatnonzero(weight >= least_big)
    big = big[np.argsort(-weight[big], kind="stable")][: SAMPLE // 2]
    rest = np.delete(np.arange(len(weight)), big)
    picked = rest[np.linspace(0, len(rest) - 1, SAMPLE // 2).astype(np.int64)]
    factor = fastest[rest].sum() / max(float(fastest[picked].sum()), 1e-9)
    heavier = memory[rest].sum() / max(float(memory[picked].sum()), 1e-9)
    chosen = np.concatenate((big, picked))
    return (
        np.vstack((sharing.amount[big].astype(np.float64), sharing.amount[picked].astype(np.float64) * factor)),
        np.concatenate((memory[big], memory[picked] * heavier)),
        sharing.allowed[chosen],
    )
