"""The training, validation and test sets of GiPH's experiments by name.

The released parameters are those of https://github.com/uidmice/placement-rl, folder parameters (single_network.txt,
multiple_networks.txt, multiple_networks_diff.txt). Graphs have v = 10 and 15, α = 0.1, 0.2 and 0.3 and connection
probability 0.1 and 0.2; see `released` for what the generator makes of them.

set              training                              test
giph-single      300 graphs, 1 network                 300 other graphs, the same network
giph-multiple    120 graphs, 10 networks               120 other graphs, the same networks
giph-unseen      the training set of giph-multiple     the test graphs of giph-multiple, 10 other networks
giph-sizes       180 graphs, 150 networks of 15 to 24  120 other graphs, 100 other networks
                 devices
enas             150 graphs, 1 network of 8 devices    150 other graphs of the same cells, the same network
traffic          460 problems of 7 computers or so     460 problems of other vehicles

A validation set serves to follow the training and to choose its best weights. The released code has none: it evaluates
the training on test problems. Here it has other graphs than both sets, and in `giph-unseen` and `giph-sizes` other
networks.

The paper says of `giph-multiple` that policies are evaluated on unseen cases; the released code trains and tests on
identical networks. `giph-unseen` differs from it in the seeds of the test networks alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

from placeopt.errors import UsageError, listing, suggestion
from placeopt.generate.arguments import Purpose, streams, whole
from placeopt.generate.giph.cases import CaseSet, Documents, Sets
from placeopt.generate.giph.enas import enas_sets
from placeopt.generate.giph.released import problem_document, released_graph, released_network
from placeopt.generate.giph.traffic import traffic_sets
from placeopt.generate.networks import Document

_SINGLE: dict[str, Any] = {"compute_heterogeneity": 0.2, "data_heterogeneity": 0.2}
_SINGLE_NETWORK: dict[str, Any] = {"speed_heterogeneity": 0.2, "bandwidth_heterogeneity": 0.2}


def _graphs(seeds: Iterable[int], **options: Any) -> Documents:
    """Return graphs in the order of the released code."""

    def graph(alpha: float, v: int, connection: float, seed: int) -> Document:
        return released_graph(seed, v=v, alpha=alpha, connection=connection, **options).document()

    return Documents(graph, product((0.1, 0.2, 0.3), (10, 15), (0.1, 0.2), seeds))


def _networks(seeds: Iterable[int], sizes: Iterable[int] = (20,), **options: Any) -> Documents:
    """Return networks in the order of the released code."""

    def network(devices: int, seed: int) -> Document:
        return released_network(seed, devices=devices, **options).document()

    return Documents(network, product(sizes, seeds))


def _split(name: str, *parts: tuple[Documents, Documents]) -> Sets:
    return Sets(
        *(
            CaseSet(f"{name}-{split}", graphs, networks, problem_document)
            for split, (graphs, networks) in zip(SPLITS, parts, strict=True)
        )
    )


def giph_single() -> Sets:
    """Return the sets of `single_network.txt`."""
    network = _networks([1], **_SINGLE_NETWORK)
    seeds = range(25), range(50, 55), range(25, 50)
    return _split("giph-single", *((_graphs(each, **_SINGLE), network) for each in seeds))


def giph_multiple() -> Sets:
    """Return the sets of `multiple_networks.txt`."""
    networks = _networks(range(10))
    seeds = range(10), range(15, 20), range(25, 35)
    return _split("giph-multiple", *((_graphs(each), networks) for each in seeds))


def giph_unseen() -> Sets:
    """Return the sets of `multiple_networks.txt`, but test on networks that training does not see."""
    graphs, networks = (range(10), range(15, 20), range(25, 35)), (range(10), range(10, 15), range(20, 30))
    return _split("giph-unseen", *((_graphs(a), _networks(b)) for a, b in zip(graphs, networks, strict=True)))


def giph_sizes() -> Sets:
    """Return the sets of `multiple_networks_diff.txt`."""
    graphs, networks = (range(15), range(15, 20), range(25, 35)), (range(15), range(15, 17), range(20, 30))
    sizes = range(15, 25)
    return _split("giph-sizes", *((_graphs(a), _networks(b, sizes)) for a, b in zip(graphs, networks, strict=True)))


DESCRIPTIONS: Mapping[str, str] = {
    "giph-single": "random graphs on one network, as released",
    "giph-multiple": "random graphs on ten networks, as released: training and test have the same networks",
    "giph-unseen": "the same, but the test networks are not in training",
    "giph-sizes": "random graphs on networks of 15 to 24 devices, as released",
    "enas": "deep learning: recurrent cells, to be merged by the pass giph-groups",
    "traffic": "the case study: sensor fusion of connected vehicles",
}
"""The sets by name, each with a line on its problems."""

SPLITS = Sets._fields
"""The parts of a set."""

SETS: Mapping[str, Callable[[], Sets]] = {
    "giph-single": giph_single,
    "giph-multiple": giph_multiple,
    "giph-unseen": giph_unseen,
    "giph-sizes": giph_sizes,
    "enas": enas_sets,
    "traffic": traffic_sets,
}
"""The sets by name."""


def case_set(name: str, split: str = "test") -> CaseSet:
    """Return the training set, the validation set or the test set of this name.

    Raises a UsageError if there is no such set.
    """
    if name not in SETS:
        raise UsageError(f'set: "{name}" is unknown; expected one of {listing(list(SETS))}{suggestion(name, SETS)}')
    if split not in SPLITS:
        raise UsageError(f'split: "{split}" is unknown; expected {" or ".join(SPLITS)}')
    return SETS[name]()[SPLITS.index(split)]


def case_document(name: str, split: str = "test", index: int = 0) -> Document:
    """Return the problem document at this index of a set; raises a UsageError if there is no such problem."""
    cases = case_set(name, split)
    pairs = cases.pairs()
    if not 0 <= index < len(pairs):
        raise UsageError(f"index: {index} is out of range; {cases.name} has the problems 0 to {len(pairs) - 1}")
    return cases.document(*pairs[index])


def sampled(cases: CaseSet, count: int, seed: int = 0) -> list[tuple[int, int]]:
    """Draw problems of a set without repetition, and return (graph, network) of each in the order of the set.

    Raises a UsageError if the set has fewer problems.
    """
    pairs = cases.pairs()
    if whole("sample", count, 1) > len(pairs):
        raise UsageError(
            f"sample: {count} is more than the {len(pairs)} problems of {cases.name}; expected at most that"
        )
    (rng,) = streams(Purpose.SETS, seed, 1)
    return [pairs[k] for k in sorted(rng.choice(len(pairs), count, replace=False).tolist())]
