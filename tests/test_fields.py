"""No field of a problem is lost when it becomes a document, or a smaller problem."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.model.documents import problem_document
from placeopt.model.layout import build_layout
from placeopt.model.pipeline import UNBOUNDED, build_pipeline
from placeopt.model.problem import UNLIMITED
from placeopt.passes.contraction import clusters, contracted
from placeopt.passes.rebuilding import rebuilt

TIMES = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
DERIVED = {"out_start", "in_start", "in_edge", "order", "device_class", "edge_source", "edge_target"}
"""Computed from other fields."""


def plain(**changes: Any) -> po.Problem:
    """Four tasks on three devices; everything else has its default."""
    names = {"task_names": list("abcd"), "device_names": list("xyz"), "edges": [(0, 2), (1, 2), (2, 3)]}
    duration = np.array([[2, 3, 4], [5, 6, 7], [8, 9, 1], [2, 4, 6]])
    return po.build_problem(**{**names, "duration": duration, **changes})  # type: ignore[arg-type]


def full() -> po.Problem:
    """The same, with another value than the default in every field."""
    feasible = np.ones((4, 3), dtype=bool)
    feasible[3, 0] = False
    moving = np.array([[0, 5, 6], [7, 0, 8], [1, 0, 2], [0, 0, 3]])
    return plain(
        name="all", description="every field", resolution=Fraction(1, 1000), device_types=["p", "p", "q"],
        feasible=feasible, resident=[1, 2, 3, 4], output=[9, 9, 9, 9], scratch=[4, 3, 2, 1], release=[1, 0, 2, 0],
        deadline=[90, 91, 92, 93], capacity=[70, 80, 90], payload=[9, 9, 9], shared=[True, True, True],
        latency=TIMES, byte_ticks_num=TIMES, byte_ticks_den=2 + np.zeros((3, 3)), power_num=[3, 4, 5],
        power_den=[1, 1, 2], byte_energy_num=TIMES, byte_energy_den=3 + np.zeros((3, 3)), relocation=moving,
        due=[5, 6, UNLIMITED, 8], due_weight=[1, 2, 1, 3], price=[[1, 2, 3], [4, 5, 6], [7, 8, 9], [0, 2, 1]],
        runs_before_next_change=7, group=[0, 0, 1, 2], separation=[(0, 2)], forward=[0, 1, 0, 3],
        objective=po.Objective(((po.Term("energy"),), (po.Term("relocation", Fraction(1, 7)),))), contention="port",
        memory_model="peak", consolidate=0.05, unavailable=po.build_unavailability([[(3, 5)], [], [(0, 2), (7, 9)]]),
        limits=[("energy", 2000), ("price", 70)], alignment=4,
        layout=build_layout(
            [9, 9, 9, 5], [(2, 0, 0, False), (2, 1, 0, True), (3, 2, 4, True)], [[(0, 8)], [], [(64, 80)]]
        ),
        setups=po.build_setups(
            ["f", None, "g", "f"], [{}, {"f": 1, "g": {"f": 2, "*": 1}}, {"f": 3}], [None, "g", None]
        ),
        shared_links=po.build_shared_links(3, {"a": po.SharedLink([1], half=True), "b": po.SharedLink([0, 2], True)}),
        resources=po.build_resources(
            4, 3, renewable={"r": 3, "s": 1.5}, budgets={"b": 0.25}, parallel=[True, False, False], feasible=feasible,
            uses={0: {"r": 1, "s": [0.5, 1, 0]}, 3: {"b": 0.05}},
        ),
    )  # fmt: skip


def pipelined(**changes: Any) -> po.Problem:
    """A pipeline of the same tasks, with another value than the default in every rule."""
    rules = {
        "overlap": [True, False, True], "full_duplex": [False, True, True], "free_transfers": [False, False, True],
        "segments": [1, 2, UNBOUNDED], "launch": [3, 0, 4], "gradient": [5, 0, 6, 7], "multicast": True, "replicas": 2,
        "in_flight": "gpipe", "microbatches": 3, "recompute": True,
    }  # fmt: skip
    training = {"forward": [0, 0, 2, 2], "group": [0, 0, 2, 2], "resident": [1, 2, 3, 4]}
    objective = po.Objective(((po.Term("period"),),))
    return plain(**{"objective": objective, **training, "pipeline": {**rules, **changes}})


def tiered(**changes: Any) -> po.Problem:
    """The same tasks with memory tiers, which the memory model `peak` does not allow."""
    tiers = po.build_tiers([4, 5, 6], [[(7, 1, 2), (UNLIMITED, 3, 1)], [], [(8, 2, 1)]])
    return plain(**{"tiers": tiers, "resident": [3, 4, 5, 6], **changes})


def same(one: object, other: object) -> bool:
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


DESCRIPTIVE = {"rounding", "efficiency", "notes", "provenance"}
"""Fields that describe the document that a problem was compiled from."""
RULES = [field.name for field in fields(po.Pipeline) if field.name != "machines"]


@pytest.mark.parametrize("rule", RULES)
class TestPipelines:
    """A problem with deadlines or port contention has no pipeline, so that these fields have tests of their own."""

    def test_the_example_has_no_default(self, rule: str) -> None:
        default = build_pipeline(4, 3)
        assert pipelined().pipeline is not None
        assert not same(getattr(pipelined().pipeline, rule), getattr(default, rule)), f"give {rule} another value"

    def test_a_document_keeps_it(self, rule: str) -> None:
        again = po.compile(problem_document(pipelined()))
        assert same(getattr(again.pipeline, rule), getattr(pipelined().pipeline, rule))

    def test_it_is_part_of_the_fingerprint(self, rule: str) -> None:
        default = getattr(build_pipeline(4, 3), rule)
        assert pipelined(**{rule: default}).fingerprint() != pipelined().fingerprint()


def test_a_document_of_a_pipeline_is_the_same_problem() -> None:
    assert po.compile(problem_document(pipelined())).fingerprint() == pipelined().fingerprint()


def test_a_document_keeps_the_machines_of_a_pipeline() -> None:
    simple = {"replicas": 1, "recompute": False, "overlap": True, "full_duplex": True, "machines": [(0, 1), (2,), (0,)]}
    problem = pipelined(**simple)
    again = po.compile(problem_document(problem))
    assert again.fingerprint() == problem.fingerprint() != pipelined(**simple | {"machines": None}).fingerprint()
    given = problem_document(problem)
    for device in list(given["devices"].values())[1:]:
        del device["pipeline"]["machines"]
    pipeline = po.compile(given).pipeline
    assert pipeline is not None
    assert pipeline.machines == ((0, 1), (2,), (3,))


class TestTiers:
    def test_a_document_keeps_them(self) -> None:
        again = po.compile(problem_document(tiered()))
        assert again.tiers == tiered().tiers
        assert again.fingerprint() == tiered().fingerprint()

    def test_a_smaller_problem_keeps_them(self) -> None:
        assert rebuilt(tiered())[0].tiers == tiered().tiers
        assert rebuilt(tiered(), devices=np.array([1]))[0].tiers is None
        last = rebuilt(tiered(), devices=np.array([1, 2]))[0]
        assert last.tiers == po.build_tiers([5, 6], [[], [(8, 2, 1)]])
        assert last.capacity.tolist() == [5, 14]
        joined = contracted(tiered(), clusters(np.array([0, 0, 1, 1]), tiered().order), np.arange(4))
        assert (joined.tiers, joined.memory.tolist()) == (tiered().tiers, [7, 11])

    def test_they_are_part_of_the_fingerprint(self) -> None:
        without = tiered(tiers=None, capacity=tiered().capacity)
        faster = tiered(tiers=po.build_tiers([4, 5, 6], [[(7, 1, 2), (UNLIMITED, 2, 1)], [], [(8, 2, 1)]]))
        assert len({each.fingerprint() for each in (tiered(), without, faster)}) == 3

    def test_devices_with_other_tiers_are_not_alike(self) -> None:
        alike = {"duration": np.full((4, 3), 2), "capacity": [9, 9, 9]}
        assert plain(**alike).device_class.tolist() == [0, 0, 0]
        tiers = po.build_tiers([4, 4, 9], [[(5, 1, 1)], [(5, 1, 1)], []])
        assert plain(**alike, tiers=tiers).device_class.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "field", [field.name for field in fields(po.Problem) if field.name not in DESCRIPTIVE | {"pipeline", "tiers"}]
)
class TestFields:
    def test_the_example_has_no_default(self, field: str) -> None:
        if field not in DERIVED | {"task_names", "device_names", "duration"}:
            assert not same(getattr(full(), field), getattr(plain(), field)), f"give {field} another value in `full`"

    def test_a_smaller_problem_keeps_it(self, field: str) -> None:
        assert same(getattr(rebuilt(full())[0], field), getattr(full(), field))

    def test_a_document_keeps_it(self, field: str) -> None:
        again = po.compile(problem_document(full()))
        assert same(getattr(again, field), getattr(full(), field))
