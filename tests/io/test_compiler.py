"""The compiler: what a spec means, in ticks and bytes worked out by hand; and that no document breaks it."""

from __future__ import annotations

import copy
import itertools
import json
import re
from decimal import Decimal
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from texts import compiled, complaints, data_complaints, edited, file_complaints

from placeopt.errors import DocumentError, SpecError, UsageError
from placeopt.io.compiler import compile_document, compile_spec, load, loads, read_spec
from placeopt.io.document import Document, parse_document
from placeopt.io.formats.documents import MODELINE
from placeopt.io.plan import plan_document
from placeopt.io.spec import Spec, json_schema
from placeopt.model.building import build_problem
from placeopt.model.documents import problem_document
from placeopt.model.memory import shortage
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.model.schedule import Schedule

ROOT = Path(__file__).parents[2]
PROBLEMS = sorted((ROOT / "problems").glob("*.yaml"))


def one(task: str, device: str = "", head: str = "") -> Problem:
    """The problem of one task on one device."""
    return compiled(f"placeopt: 1\n{head}\ndevices: {{d: {{{device}}}}}\ntasks: {{a: {{{task}}}}}\n")


def ticks(task: str, device: str = "", head: str = "") -> int:
    """Ticks of one task on one device."""
    return int(one(task, device, head).duration[0, 0])


DESIGN = """\
placeopt: 1
name: five-node
description: The worked example of Carbonari et al. 2017, appendix 6.1.
resolution: 1 s                 # length of a tick; default 1 ns
operations:                     # duration by operation and device type
  conv:    {cpu: 4 s, gpu: 2 s}
  maxpool: {cpu: 6 s, gpu: 5 s}
  avgpool: {cpu: 1 s, gpu: 3 s}
  concat:  {cpu: 5 s, gpu: 7 s}
devices:
  core: {type: cpu, count: 2, memory: 64 GiB}     # core0, core1
  gpu:  {type: gpu, memory: 16 GiB}
links:
  default: {bandwidth: 12 GB/s, latency: 10 us}
  overrides:
    - {between: [gpu, gpu], bandwidth: 300 GB/s, latency: 2 us}   # names or types; `from`/`to` for one way
tasks:
  n1: {op: conv, output: 3 MiB, memory: {resident: 9 MiB, scratch: 1 MiB}}
  n2: {op: maxpool, after: [n1]}
  n3: {op: avgpool, after: {n2: 512 KiB}}         # payload of this edge alone
  n4: {op: conv, after: [n2], colocate: head}
  n5: {op: concat, after: [n3, n4], devices: [gpu], colocate: head}
objective: makespan
"""


@pytest.mark.parametrize("text", [DESIGN, json.dumps(parse_document(DESIGN).data)])
def test_texts(text: str) -> None:
    assert loads(text).fingerprint() == compiled(DESIGN).fingerprint()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: {a: {tme: 1}}\ndevices: {d: {}}\nplaceopt: 1", "line 1, column 13: tasks.a.tme: unknown key"),
        ('{"placeopt": 1, "devices": {"d": {}}\n"tasks": {}}', "line 2, column 1: is not valid JSON: Expecting ','"),
        (
            "placeopt: 1\ndevices: {d: {}}\ngraph: {file: g}",
            "line 3, column 15: graph.file: g: is not opened",
        ),
    ],
)
def test_texts_with_errors(text: str, message: str) -> None:
    with pytest.raises(SpecError, match="^" + re.escape(message)):
        loads(text)


def test_a_path_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="loads takes a text, got PosixPath"):
        loads(tmp_path)  # type: ignore[arg-type]


def test_a_number_follows_a_digit_with_a_hyphen() -> None:
    devices = {"t4": {"count": 2}, "gpu": {"count": 2}, "h100": {}}
    problem = compile_spec({"placeopt": 1, "devices": devices, "tasks": {"a": {"time": {"t4": 1}, "pin": "t4-1"}}})
    assert problem.device_names == ("t4-0", "t4-1", "gpu0", "gpu1", "h100")


def test_the_example_of_the_design() -> None:
    problem = compiled(DESIGN)
    assert problem.name == "five-node"
    assert problem.description.startswith("The worked example")
    assert problem.resolution == 1
    assert problem.device_names == ("core0", "core1", "gpu")
    assert problem.device_types == ("cpu", "cpu", "gpu")
    assert problem.duration.tolist() == [[4, 4, 2], [6, 6, 5], [1, 1, 3], [4, 4, 2], [0, 0, 7]]
    assert problem.feasible.tolist() == [[True] * 3] * 4 + [[False, False, True]]
    assert problem.capacity.tolist() == [64 * 2**30, 64 * 2**30, 16 * 2**30]
    mib = 2**20
    assert problem.resident.tolist() == [9 * mib, 0, 0, 0, 0]
    assert problem.output.tolist() == [3 * mib, 0, 0, 0, 0]
    assert problem.scratch.tolist() == [mib, 0, 0, 0, 0]
    assert list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)) == [
        (0, 1), (1, 2), (1, 3), (2, 4), (3, 4),
    ]  # fmt: skip
    assert problem.payload.tolist() == [3 * mib, mib // 2, 0, 0, 0]
    assert problem.shared.tolist() == [True, False, True, True, True]
    assert problem.latency.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]  # 10 us rounded up to a second
    assert problem.group.tolist() == [0, 1, 2, 3, 3]
    assert problem.device_class.tolist() == [0, 0, 1]
    assert problem.objective == Objective()
    assert (problem.contention, problem.memory_model) == ("none", "sum")


class TestTimes:
    @pytest.mark.parametrize(
        ("resolution", "time", "expected"),
        [
            ("1 ms", "0.1 s", 100),
            ("1 ms", "0.1001 s", 101),
            ("1 ns", "0.1 s", 10**8),
            ("3 us", "10 us", 4),
            ("0.1 s", "0.3 s", 3),  # 0.3 / 0.1 is 2.9999999999999996 in floats
            ("7 ns", "1 s", ceil(10**9 / 7)),
            ("1 min", "1 s", 1),
            ("1 h", "0 s", 0),
            ("1 ns", "1e-30 s", 1),
            ("1 ns", "0.5 ns", 1),
            ("1 ns", "1152921504.606846976 s", 2**60),
        ],
    )
    def test_are_rounded_up_to_whole_ticks_exactly(self, resolution: str, time: str, expected: int) -> None:
        assert ticks(f"time: {time}", head=f"resolution: {resolution}") == expected

    @pytest.mark.parametrize(
        ("time", "head", "expected"),
        [
            ("5", "", 5),
            ("0", "", 0),
            ("20.2", "", 21),
            ("1e3", "", 1000),
            ("'5'", "", 5),
            ("1_000", "", 1000),
            ("010", "", 10),
            ("5", "units: {time: ms}", 5_000_000),
            ("0.0000001", "units: {time: s}", 100),
            ("5", "resolution: 2 ms\nunits: {time: s}", 2500),
            ("5 us", "units: {time: s}", 5000),
        ],
    )
    def test_without_a_unit_are_ticks_unless_units_says_otherwise(self, time: str, head: str, expected: int) -> None:
        assert ticks(f"time: {time}", head=head) == expected

    def test_by_device_the_most_specific_wins(self) -> None:
        problem = compiled("""\
placeopt: 1
devices:
  cpu: {type: host}
  gpu: {type: card, count: 3}
  card: {type: old}
  tpu:
tasks:
  by_type: {time: {card: 5, host: 9, old: 2}}
  by_pool: {time: {gpu: 4, card: 5}}
  by_name: {time: {gpu1: 3, gpu: 4, card: 5, "*": 7}}
  written_the_other_way_round: {time: {"*": 7, card: 5, gpu: 4, gpu1: 3}}
  everywhere: {time: 8}
""")
        assert problem.device_names == ("cpu", "gpu0", "gpu1", "gpu2", "card", "tpu")
        rows = [
            [None if not allowed else ticks for ticks, allowed in zip(row, mask, strict=True)]
            for row, mask in zip(problem.duration.tolist(), problem.feasible.tolist(), strict=True)
        ]
        assert rows == [
            [9, None, None, None, 5, None],  # a device is called card: the word means that device, not the type
            [None, 4, 4, 4, 5, None],
            [7, 4, 3, 4, 5, 7],
            [7, 4, 3, 4, 5, 7],
            [8, 8, 8, 8, 8, 8],
        ]

    def test_by_operation(self) -> None:
        problem = compiled("""\
placeopt: 1
devices: {cpu: , gpu: {count: 2}}
operations:
  conv: {cpu: 4, gpu1: 2, npu: 1}     # no npu here: ignored
  pool: 3
  move: {npu: 1}
tasks:
  a: {op: conv}
  b: {op: pool}
  c: {op: move, time: 7}              # a mere label
  d: {op: conv, devices: [gpu]}
""")
        assert problem.duration.tolist() == [[4, 0, 2], [3, 3, 3], [7, 7, 7], [0, 0, 2]]
        assert problem.feasible.tolist() == [[True, False, True], [True] * 3, [True] * 3, [False, False, True]]


class TestRoofline:
    @pytest.mark.parametrize(
        ("task", "device", "expected"),
        [
            # 3 GFLOP at 2 TFLOP/s are 1.5 ms; 1 MB at 100 GB/s are 10 us
            ("flops: 3 GFLOP", "speed: 2 TFLOP/s", 1_500_000),
            ("flops: 3 GFLOP, bytes: 1 MB", "speed: 2 TFLOP/s, memory_bandwidth: 100 GB/s", 1_500_000),
            ("flops: 3 GFLOP, bytes: 1 GB", "speed: 2 TFLOP/s, memory_bandwidth: 100 GB/s", 10_000_000),
            ("flops: 3 GFLOP, bytes: 1 GB", "speed: 2 TFLOP/s", 1_500_000),  # no bandwidth stated: not the limit
            ("bytes: 1 GB", "memory_bandwidth: 100 GB/s", 10_000_000),
            ("bytes: 1 GB, flops: 0", "memory_bandwidth: 100 GB/s", 10_000_000),
            ("flops: 3 GFLOP", "speed: 2 TFLOP/s, overhead: 4.5 us", 1_504_500),
            ("flops: 0", "overhead: 5 us", 5000),
            ("flops: 0", "", 0),
            ("flops: 10", "speed: 3 GFLOP/s", 4),  # 3.33 ns
            ("flops: 9", "speed: 3 GFLOP/s", 3),
            ("flops: 10, bytes: 10", "speed: 3 GFLOP/s, memory_bandwidth: 2.5 GB/s, overhead: 0.5 ns", 5),
            ("flops: 7", "speed: 3", 3),  # bare: FLOP per tick
            ("bytes: 7", "memory_bandwidth: 0.5", 14),
            ("flops: 1 TFLOP", "speed: 7 TFLOPS", ceil(10**9 / 7)),
            ("op: conv, flops: 7", "speed: 7", 1),
        ],
    )
    def test_is_the_larger_quotient_rounded_up_and_the_overhead(self, task: str, device: str, expected: int) -> None:
        assert ticks(task, device) == expected

    @pytest.mark.parametrize(
        ("task", "device", "head", "expected"),
        [
            ("flops: 3", "speed: 2", "units: {work: GFLOP, speed: TFLOP/s}", 1_500_000),
            # 3 MiB at 2 GiB/s are 3 / 2048 s
            ("bytes: 3", "memory_bandwidth: 2", "units: {memory: MiB, bandwidth: GiB/s}", 1_464_844),
            ("flops: 3 FLOP", "speed: 2 FLOP/s", "units: {work: GFLOP, speed: TFLOP/s}", 1_500_000_000),
            ("flops: 0", "overhead: 3", "units: {time: us}", 3000),
        ],
    )  # fmt: skip
    def test_with_units(self, task: str, device: str, head: str, expected: int) -> None:
        assert ticks(task, device, head) == expected

    @settings(deadline=None)
    @given(
        st.integers(0, 10**12), st.integers(0, 10**12), st.integers(1, 10**9), st.integers(1, 10**9), st.integers(0, 9)
    )  # fmt: skip
    def test_is_exact(self, flops: int, traffic: int, speed: int, bandwidth: int, overhead: int) -> None:
        """Rates in thousandths of a FLOP or byte per tick."""
        problem = compile_spec({
            "placeopt": 1,
            "devices": {"d": {"speed": f"{speed}e-3", "memory_bandwidth": f"{bandwidth}e-3", "overhead": overhead}},
            "tasks": {"a": {"flops": flops, "bytes": traffic}},
        })  # fmt: skip
        expected = max(-(-flops * 1000 // speed), -(-traffic * 1000 // bandwidth)) + overhead
        assert problem.duration[0, 0] == expected


class TestLinks:
    HEAD = """\
placeopt: 1
devices: {a: {type: x}, b: {type: x}, c: {type: y}}
tasks: {t: {time: 1}}
"""

    def links(self, text: str, head: str = "") -> Problem:
        return compiled(f"{self.HEAD}{head}\nlinks:\n{text}\n")

    def test_are_free_without_a_section(self) -> None:
        problem = compiled(self.HEAD)
        assert problem.latency.tolist() == [[0] * 3] * 3
        assert problem.transfer(10**12, np.arange(3), np.array([1, 2, 0])).tolist() == [0, 0, 0]

    @pytest.mark.parametrize(
        ("bandwidth", "payload", "expected"),
        [
            ("12 GB/s", 3_000_000, 250_000),
            ("12 GB/s", 3_000_001, 250_001),
            ("12 GB/s", 1, 1),
            ("12 GB/s", 0, 0),
            ("12 Gb/s", 3_000_000, 2_000_000),
            ("12 GiB/s", 3_000_000, ceil(Fraction(3_000_000 * 10**9, 12 * 2**30))),
            ("0.3 B/s", 3, 10 * 10**9),
            ("7", 50, 8),  # bytes per tick
            ("0.5", 50, 100),
        ],
    )
    def test_transfers_are_exact(self, bandwidth: str, payload: int, expected: int) -> None:
        problem = self.links(f"  default: {{bandwidth: {bandwidth}}}")
        assert problem.transfer(payload, 0, 1) == expected
        assert problem.transfer(payload, 1, 1) == 0

    def test_default_and_overrides_later_ones_win_and_leave_the_rest(self) -> None:
        problem = self.links("""\
  default: {bandwidth: 2, latency: 10, energy: 5 nJ/B}
  overrides:
    - {between: [x, y], latency: 20}
    - {between: [x, x], bandwidth: 4}
    - {from: b, to: [a, c], latency: 30}
    - {from: "*", to: c, bandwidth: 8}
""")
        assert problem.latency.tolist() == [[0, 10, 20], [30, 0, 30], [20, 20, 0]]
        assert problem.byte_ticks_den.tolist() == [[1, 4, 8], [4, 1, 8], [2, 2, 1]]
        assert problem.byte_ticks_num.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
        assert problem.byte_energy_num.tolist() == [[0, 5, 5], [5, 0, 5], [5, 5, 0]]
        assert problem.byte_energy_den.tolist() == [[1] * 3] * 3

    def test_between_a_device_and_its_own_type_leaves_the_device_itself_alone(self) -> None:
        problem = self.links("  overrides: [{between: [a, x], latency: 7, bandwidth: 1}]")
        assert problem.latency.tolist() == [[0, 7, 0], [7, 0, 0], [0, 0, 0]]
        assert problem.byte_ticks_num.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]

    def test_units_of_bare_numbers(self) -> None:
        problem = self.links("  default: {bandwidth: 8, latency: 3}", "units: {bandwidth: Gb/s, time: us}")
        assert problem.latency[0, 1] == 3000
        assert problem.transfer(10, 0, 1) == 3000 + 10

    def test_ratios_too_fine_for_64_bits_become_the_nearest_that_fit(self) -> None:
        problem = self.links("  default: {bandwidth: 123456789.123456789123456789 B/s}")
        num, den = int(problem.byte_ticks_num[0, 1]), int(problem.byte_ticks_den[0, 1])
        assert num * den < 2**62
        exact = 10**9 / Fraction("123456789.123456789123456789")
        assert abs(Fraction(num, den) / exact - 1) < Fraction(1, 10**15)


class TestPayloadsAndMemory:
    def test_outputs_and_payloads_of_edges(self) -> None:
        problem = compiled("""\
placeopt: 1
units: {memory: KiB}
devices: {d: }
tasks:
  a: {time: 1, output: 2}
  b: {time: 1, after: a}
  c: {time: 1, after: [a, b]}
  d: {time: 1, after: {a: , b: 1.5, c: 3 B}}
  e: {time: 1, output: 0.3 B, after: {a: 0}}
  f: {time: 1, after: e}
""")
        rows = zip(*(getattr(problem, key).tolist() for key in ("edge_source", "edge_target", "payload", "shared")),
                   strict=True)  # fmt: skip
        assert list(rows) == [
            (0, 1, 2048, True), (0, 2, 2048, True), (0, 3, 2048, True), (0, 4, 0, False),
            (1, 2, 0, True), (1, 3, 1536, False), (2, 3, 3, False), (4, 5, 1, True),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("task", "expected"),
        [
            ("", (0, 0, 0)),
            ("memory: 5", (5, 0, 0)),
            ("memory: 1.5 KiB", (1536, 0, 0)),
            ("memory: {resident: 5, output: 6, scratch: 7}", (5, 6, 7)),
            ("output: 3", (0, 3, 0)),
            ("output: 3, memory: 5", (5, 3, 0)),
            ("output: 3, memory: {scratch: 5}", (0, 3, 5)),
            ("output: 3, memory: {output: 9}", (0, 9, 0)),
            ("output: 3, memory: {output: 0}", (0, 0, 0)),
            ("memory: 0.1 B", (1, 0, 0)),  # rounded up
            ("memory: {}", (0, 0, 0)),
            ("memory: null", (0, 0, 0)),
        ],
    )
    def test_memory_of_tasks(self, task: str, expected: tuple[int, int, int]) -> None:
        problem = one(f"time: 1, {task}")
        assert (int(problem.resident[0]), int(problem.output[0]), int(problem.scratch[0])) == expected

    def test_capacities_are_rounded_down_or_unlimited(self) -> None:
        assert one("time: 1", "memory: 1.5 B").capacity.tolist() == [1]
        assert one("time: 1", "memory: 12 b").capacity.tolist() == [1]
        assert one("time: 1", "memory: 2", "units: {memory: GiB}").capacity.tolist() == [2**31]
        assert one("time: 1").capacity.tolist() == [UNLIMITED]
        assert one("time: 1", "memory: 0").capacity.tolist() == [0]

    def test_memory_that_fits_exactly(self) -> None:
        text = """\
placeopt: 1
devices: {a: {memory: 10}, b: {memory: 6}}
tasks:
  x: {time: 1, memory: 4, colocate: g}
  y: {time: 1, memory: {resident: 3, scratch: 3}, colocate: g}
  z: {time: 1, memory: 6}
"""
        assert complaints(text) == []
        assert shortage(compiled(text)) is None
        more = compiled(edited(text, ("memory: 6}\n", "memory: 7}\n")))  # infeasible, but not an error of the file
        assert shortage(more) == "all tasks together need 17 B of memory, and all devices have 16 B"
        assert complaints(edited(text, ("resident: 3", "resident: 4"))) == [
            "4:37: tasks.x.colocate: its colocation group (x, y) needs 11 B, more than any device that may run it has "
            "(the largest is a with 10 B)"
        ]
        # Under the peak model what is resident must fit together with what one task adds to it.
        peak = "memory_model: peak\n" + edited(text, ("memory: 4", "memory: {resident: 4, output: 3}"))
        assert complaints(peak) == []
        assert complaints(edited(peak, ("scratch: 3", "scratch: 4"))) == [
            "5:60: tasks.x.colocate: its colocation group (x, y) needs 11 B at one time, more than any device that may "
            "run it has (the largest is a with 10 B)"
        ]
        assert complaints(edited(peak, ("1, memory: 6}\n", "1, memory: {output: 6, scratch: 5}}\n"))) == [
            "7:24: tasks.z.memory: needs 11 B at one time, more than any device that may run it has (the largest is a "
            "with 10 B)"
        ]
        # A task that takes no time holds nothing for any time.
        assert (
            complaints(edited(peak, ("z: {time: 1, memory: 6", "z: {time: 0, memory: {output: 6, scratch: 5}"))) == []
        )
        assert (
            complaints(edited(peak, ("z: {time: 1, memory: 6", "z: {time: {a: 1, b: 0}, memory: {output: 11}"))) == []
        )
        more = compiled(edited(peak, ("memory: 6}\n", "memory: 10}\n")))
        assert shortage(more) == "all tasks together need 17 B of resident memory, and all devices have 16 B"

    def test_what_the_peak_model_would_free_is_told(self) -> None:
        head = "placeopt: 1\ndevices: {a: {memory: 10}, b: {memory: 6}}\ntasks:\n"
        group = (
            "  x: {time: 1, memory: {resident: 2, scratch: 5}, colocate: g}\n"
            "  y: {time: 1, memory: {output: 7}, colocate: g}\n"
        )
        assert complaints(head + group) == [
            "4:61: tasks.x.colocate: its colocation group (x, y) needs 14 B, more than any device that may run it has "
            "(the largest is a with 10 B); 2 B of it is resident, and memory_model: peak counts the other 12 B only "
            "while it is live"
        ]
        assert complaints("memory_model: peak\n" + head + group) == []
        apart = "  x: {time: 1, memory: {resident: 2, scratch: 5}}\n  y: {time: 1, memory: 6, output: 4}\n"
        assert shortage(compiled(head + apart)) == (
            "all tasks together need 17 B of memory, and all devices have 16 B; 8 B of it is resident, and "
            "memory_model: peak counts the other 9 B only while it is live"
        )
        assert "peak" not in complaints(head + edited(group, ("output: 7", "output: 9")))[0]  # it would not help
        assert "peak" not in complaints(head + "  x: {time: 1, memory: {scratch: 11}}\n")[0]
        lacking = shortage(compiled(head + "  x: {time: 1, memory: 9}\n  y: {time: 1, memory: 9}\n"))
        assert lacking == "all tasks together need 18 B of memory, and all devices have 16 B"

    def test_one_unlimited_device_holds_everything(self) -> None:
        text = "placeopt: 1\ndevices: {a: {memory: 1}, b: }\ntasks: {x: {time: 1, memory: 1 PiB}}\n"
        assert complaints(text) == []


class TestPlacementRules:
    DEVICES = """\
placeopt: 1
devices:
  cpu: {type: host, features: avx}
  gpu: {type: card, count: 2, features: [tensor, fp16]}
  old: {type: card, features: [fp16]}
tasks:
"""

    @pytest.mark.parametrize(
        ("task", "allowed"),
        [
            ("", "cpu gpu0 gpu1 old"),
            ("devices: card", "gpu0 gpu1 old"),
            ("devices: gpu", "gpu0 gpu1"),
            ("devices: [gpu1, cpu]", "cpu gpu1"),
            ("devices: [gpu, gpu0, card]", "gpu0 gpu1 old"),
            ('devices: "*"', "cpu gpu0 gpu1 old"),
            ("requires: fp16", "gpu0 gpu1 old"),
            ("requires: [fp16, tensor]", "gpu0 gpu1"),
            ("requires: []", "cpu gpu0 gpu1 old"),
            ("requires: fp16, devices: [old, cpu]", "old"),
            ("pin: gpu1", "gpu1"),
            ("pin: host", "cpu"),  # a type that stands for one device
            ("pin: gpu1, requires: tensor, devices: card", "gpu1"),
        ],
    )
    def test_devices_requires_and_pin(self, task: str, allowed: str) -> None:
        problem = compiled(f"{self.DEVICES}  a: {{time: 1, {task}}}\n")
        assert [problem.device_names[d] for d in np.flatnonzero(problem.feasible[0])] == allowed.split()

    def test_features_in_the_plural_and_the_singular(self) -> None:
        problem = compiled(f"{self.DEVICES}  a: {{time: 1, requires: avx}}\n")
        assert problem.feasible.tolist() == [[True, False, False, False]]

    def test_colocation_joins_labels(self) -> None:
        tasks = [
            "colocate: x",
            "",
            "colocate: [y, z]",
            "colocate: [x, x]",
            "colocate: [z, w]",
            "colocate: w",
            "colocate: v",
        ]
        problem = compiled(self.DEVICES + "".join(f"  t{k}: {{time: 1, {text}}}\n" for k, text in enumerate(tasks)))
        assert problem.group.tolist() == [0, 1, 2, 0, 2, 2, 3]

    def test_separation_is_pairwise(self) -> None:
        tasks = ["separate: x", "separate: [x, y]", "separate: [x, x]", "separate: y", "separate: z"]
        problem = compiled(self.DEVICES + "".join(f"  t{k}: {{time: 1, {text}}}\n" for k, text in enumerate(tasks)))
        assert problem.separation.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3]]


class TestReleaseTimesAndDeadlines:
    @pytest.mark.parametrize(
        ("task", "head", "expected"),
        [
            ("", "", (0, UNLIMITED)),
            ("release: 5, deadline: 9", "", (5, 9)),
            ("release: 0, deadline: 0 s", "", (0, 0)),
            ("release: 5 ms", "resolution: 1 us", (5000, UNLIMITED)),
            ("release: 4.1 us, deadline: 4.9 us", "resolution: 0.1 us", (41, 49)),
            # Up and down: what a schedule in whole ticks keeps, it keeps exactly.
            ("release: 3.1 us, deadline: 6.9 us", "resolution: 1 us", (4, 6)),
            ("release: 10 us, deadline: 10 us", "resolution: 3 us", None),
            ("release: 9 us, deadline: 11 us", "resolution: 3 us", (3, 3)),
            ("release: 0.3 s, deadline: 0.3 s", "resolution: 0.1 s", (3, 3)),  # in floats 2.9999999999999996
            ("deadline: 0.9 ns", "", (0, 0)),
            ("release: 2, deadline: 3", "units: {time: ms}", (2_000_000, 3_000_000)),
            ("release: 2, deadline: 3.5 us", "units: {time: us}", (2000, 3500)),
            ("deadline: 1152921504606846976", "", (0, 2**60)),
        ],
    )
    def test_are_times_rounded_up_and_down(self, task: str, head: str, expected: tuple[int, int] | None) -> None:
        text = f"placeopt: 1\n{head}\ndevices: {{d: }}\ntasks: {{a: {{time: 0, {task}}}}}\n"
        if expected is None:
            assert [line.partition("a.deadline: ")[2] for line in complaints(text)] == [
                'no whole tick lies between the release time "10 us" and the deadline "10 us"; use a finer resolution'
            ]
        else:
            problem = compiled(text)
            assert (int(problem.release[0]), int(problem.deadline[0])) == expected

    def test_just_enough_time_on_the_fastest_device(self) -> None:
        text = "placeopt: 1\ndevices: {a: , b: }\ntasks: {t: {time: {a: 7, b: 4}, release: 6, deadline: 10}}\n"
        assert compiled(text).deadline.tolist() == [10]
        assert complaints(edited(text, ("deadline: 10", "deadline: 9"))) == [
            "3:55: tasks.t.deadline: 9 cannot be met: the task, released at 6, takes 4 ns at its fastest (on b), "
            "1 ns too long"
        ]
        assert complaints(edited(text, ("{t:", "{t: {pin: a, "), ("{time: {a: 7", "time: {a: 7"))) == [
            "3:64: tasks.t.deadline: 10 cannot be met: the task, released at 6, takes 7 ns at its fastest (on a), "
            "3 ns too long"
        ]

    def test_in_a_graph_file_have_their_place_there(self, tmp_path: Path) -> None:
        (tmp_path / "p.yaml").write_text("placeopt: 1\ngraph: {file: g.json}\ndevices: {cpu: }\n", encoding="utf-8")
        (tmp_path / "g.json").write_text('{"tasks": {"a": {"time": 5, "release": 2, "deadline": 7}}}', encoding="utf-8")
        problem = load(tmp_path / "p.yaml")
        assert (problem.release.tolist(), problem.deadline.tolist()) == ([2], [7])
        (tmp_path / "g.json").write_text('{"tasks": {"a": {"time": 5, "release": 2, "deadline": 6}}}', encoding="utf-8")
        assert file_complaints(tmp_path / "p.yaml") == [
            f"{tmp_path / 'g.json'}:1:55: tasks.a.deadline: 6 cannot be met: the task, released at 2, takes 5 ns "
            "at its fastest (on cpu), 1 ns too long"
        ]

    @pytest.mark.parametrize(("latest", "fits"), [(2**60 - 2**58 - 2**57, True), (2**60 - 2**58 + 2**54, False)])
    def test_the_last_release_counts_towards_the_longest_schedule(self, latest: int, fits: bool) -> None:
        text = (
            "placeopt: 1\ndevices: {cpu: }\n"
            f"tasks: {{a: {{time: {2**58}}}, b: {{time: 0, release: {latest}}}, c: {{time: 0, release: 3}}}}\n"
        )
        found = complaints(text)
        assert found == [] if fits else "the last release time, all durations and transfers add up" in found[0]


class TestFixedPlacement:
    TEXT = """\
placeopt: 1
devices:
  cpu: {type: host, features: avx}
  gpu: {type: card, count: 2}
  card: {type: gpu0}
placement: {b: gpu1}
tasks:
  a: {time: 1}
  b: {time: 2}
  c: {time: {host: 3, gpu: 4}, colocate: g}
  d: {time: 5, colocate: g, separate: s}
  e: {time: 6, separate: s}
"""

    @pytest.mark.parametrize(
        ("placement", "expected"),
        [
            ("", {}),
            ("{}", {}),
            ("{b: gpu1}", {"b": "gpu1"}),
            ("{e: cpu, a: gpu0, b: gpu0}", {"a": "gpu0", "b": "gpu0", "e": "cpu"}),
            ("{a: host}", {"a": "cpu"}),  # a type that stands for one device
            ("{a: gpu0}", {"a": "gpu0"}),  # also the type of another device: the name counts before
            ("{a: card}", {"a": "card"}),
            ("{c: gpu1, d: gpu1, e: cpu}", {"c": "gpu1", "d": "gpu1", "e": "cpu"}),
        ],
    )
    def test_leaves_a_task_one_device_and_the_others_free(self, placement: str, expected: dict[str, str]) -> None:
        free = compiled(edited(self.TEXT, ("{b: gpu1}", "")))
        problem = compiled(edited(self.TEXT, ("{b: gpu1}", placement)))
        for row, name in enumerate(problem.task_names):
            allowed = [problem.device_names[d] for d in np.flatnonzero(problem.feasible[row])]
            if name in expected:
                assert allowed == [expected[name]]
                d = problem.device_names.index(expected[name])
                assert problem.duration[row].tolist() == [free.duration[row, d] if k == d else 0 for k in range(4)]
            else:
                assert problem.feasible[row].tolist() == free.feasible[row].tolist()

    def test_is_what_pins_say(self) -> None:
        pinned = compiled(edited(self.TEXT, ("placement: {b: gpu1}\n", ""), ("time: 2", "time: 2, pin: gpu1")))
        assert compiled(self.TEXT).fingerprint() == pinned.fingerprint()
        assert compiled(edited(self.TEXT, ("time: 2", "time: 2, pin: gpu1"))).fingerprint() == pinned.fingerprint()

    def test_of_numbered_tasks_made_in_code(self) -> None:
        problem = compile_spec(
            {"placeopt": 1, "devices": {0: {}, 1: {}}, "tasks": {7: {"time": 1}}, "placement": {7: 1}}
        )
        assert problem.feasible.tolist() == [[False, True]]

    def plan(self, folder: Path, plan: str, text: str = TEXT) -> list[str]:
        (folder / "plans").mkdir(exist_ok=True)
        (folder / "plans" / "plan.json").write_text(plan, encoding="utf-8")
        (folder / "p.yaml").write_text(edited(text, ("{b: gpu1}", "{file: plans/plan.json}")), encoding="utf-8")
        return [line.replace(f"{folder}/", "") for line in file_complaints(folder / "p.yaml")]

    def test_as_a_plan_file_has_it(self, tmp_path: Path) -> None:
        plan = (
            '{"placeopt_plan": 1, "tasks": {"b": {"device": "gpu1", "start": 3}, "e": {"device": "cpu", "start": 9}}}'
        )
        assert self.plan(tmp_path, plan) == []
        problem = load(tmp_path / "p.yaml")
        assert problem.fingerprint() == compiled(edited(self.TEXT, ("b: gpu1", "b: gpu1, e: cpu"))).fingerprint()
        # A spec made in code looks for it in its folder.
        data = parse_document((tmp_path / "p.yaml").read_text(encoding="utf-8")).data
        assert compile_spec(data, folder=tmp_path).fingerprint() == problem.fingerprint()
        spec = read_spec(tmp_path / "p.yaml")
        assert compile_spec(spec, folder=tmp_path).fingerprint() == problem.fingerprint()

    def test_as_the_plan_of_a_whole_solution_has_it(self, tmp_path: Path) -> None:
        free = compiled(edited(self.TEXT, ("placement: {b: gpu1}\n", "")))
        device = np.array([0, 1, 2, 2, 0])
        document = plan_document(free, Schedule(device, np.arange(5)))
        assert self.plan(tmp_path, json.dumps(document)) == []
        problem = load(tmp_path / "p.yaml")
        assert problem.feasible.sum(axis=1).tolist() == [1] * 5
        assert problem.feasible.argmax(axis=1).tolist() == device.tolist()

    @pytest.mark.parametrize(
        ("tasks", "answer"),
        [
            (
                '{"f": {"device": "cpu", "start": 0},\n"b": {"device": "gpu2", "start": 0}}',
                [
                    'plans/plan.json:1:32: tasks.f: unknown task "f"; known are a, b, c, d, e',
                    'plans/plan.json:2:17: tasks.b.device: unknown device "gpu2"; did you mean gpu1?',
                ],
            ),
            (
                '{"c": {"device": "card", "start": 0},\n"a": {"device": "gpu", "start": 0}}',
                [
                    'plans/plan.json:1:48: tasks.c.device: "card" contradicts the task\'s durations (host, gpu); '
                    "it may run on cpu, gpu0, gpu1",
                    'plans/plan.json:2:17: tasks.a.device: "gpu" refers to 2 devices (gpu0, gpu1); expected one',
                ],
            ),
            (
                '{"c": {"device": "cpu", "start": 0},\n"e": {"device": "gpu0", "start": 0},'
                '\n"d": {"device": "gpu0", "start": 9}}',
                [
                    'plans/plan.json:3:17: tasks.d.device: "gpu0", while task "c", with which it is colocated, '
                    "is fixed on cpu"
                ],
            ),
            (
                '{"d": {"device": "gpu0", "start": 0},\n"e": {"device": "gpu0", "start": 5}}',
                [
                    'plans/plan.json:2:17: tasks.e.device: "gpu0", where task "d" is fixed, from which it is separated',
                ],
            ),
            (
                '{"a": {"device": "cpuu"}, "b": {"device": 3, "start": 0},\n"e": {"device": "cpuu", "start": 5}}',
                [
                    "plans/plan.json:1:32: tasks.a: start is missing",
                    'plans/plan.json:1:73: tasks.b.device: unknown device "3"; known are cpu, gpu0, gpu1, card',
                    'plans/plan.json:2:17: tasks.e.device: unknown device "cpuu"; did you mean cpu?',
                ],
            ),
            (
                '{"d": {"device": "card", "start": 0}}',
                [
                    'plans/plan.json:1:48: tasks.d.device: "card", where task "c", with which it is colocated, '
                    "cannot run",
                ],
            ),
        ],
    )
    def test_mistakes_in_a_plan_file_have_their_places_there(
        self, tasks: str, answer: list[str], tmp_path: Path
    ) -> None:
        assert self.plan(tmp_path, f'{{"placeopt_plan": 1, "tasks": {tasks}}}') == answer

    def test_a_pin_is_near_a_reference_to_one_device(self) -> None:
        pinned = edited(self.TEXT, ("time: 2", "time: 2, pin: gpu9"), ("{time: 6", "{time: 6, devices: [gpu9]"))
        assert complaints(pinned) == [
            '9:21: tasks.b.pin: unknown device "gpu9"; did you mean gpu1?',
            '12:26: tasks.e.devices[0]: unknown device "gpu9"; did you mean gpu?',
        ]

    def test_mistakes_in_the_spec_and_in_its_plan_come_one_after_the_other(self, tmp_path: Path) -> None:
        plan = '{"placeopt_plan": 1, "tasks": {"b": {"device": "cqu", "start": 3}}}'
        assert self.plan(
            tmp_path, plan, edited(self.TEXT, ("{time: 6", "{tme: 6"), ("time: 2", "time: 2, pin: x"))
        ) == [
            'p.yaml:9:21: tasks.b.pin: unknown device "x"; known are cpu, gpu0, gpu1, card, host',
            "p.yaml:12:7: tasks.e.tme: unknown key; did you mean time?",
            'plans/plan.json:1:48: tasks.b.device: unknown device "cqu"; did you mean cpu?',
        ]

    @pytest.mark.parametrize(
        ("plan", "answer"),
        [
            ("", "plans/plan.json: the document is empty; expected a mapping"),
            ("[]", "plans/plan.json:1:1: the document holds a list; expected a mapping"),
            ("{", "plans/plan.json:1:2: is not valid JSON: Expecting property name enclosed in double quotes"),
            ("{}", "plans/plan.json:1:1: placeopt_plan is missing\nplans/plan.json:1:1: tasks is missing"),
            (
                '{"placeopt": 1, "devices": {}}',
                "plans/plan.json:1:1: placeopt_plan is missing: this looks like a problem file, expected a plan file",
            ),
        ],
    )
    def test_a_file_that_is_no_plan(self, plan: str, answer: str, tmp_path: Path) -> None:
        assert "\n".join(self.plan(tmp_path, plan)) == answer

    def test_a_plan_file_that_cannot_be_read_belongs_to_the_line_that_names_it(self, tmp_path: Path) -> None:
        (tmp_path / "p.yaml").write_text(edited(self.TEXT, ("{b: gpu1}", "{file: .}")), encoding="utf-8")
        assert file_complaints(tmp_path / "p.yaml") == [
            f"{tmp_path / 'p.yaml'}:6:19: placement.file: {tmp_path}: is a folder, expected a file"
        ]

    def test_a_task_may_be_called_file(self) -> None:
        text = edited(self.TEXT, ("a: {time: 1}", "file: {time: 1}"), ("{b: gpu1}", "{b: gpu1, file: gpu0}"))
        assert compiled(text).feasible[0].tolist() == [False, True, False, False]

    def test_one_entry_gets_one_complaint_however_many_it_is_at_odds_with(self) -> None:
        tasks = {f"t{k}": {"time": 1, "separate": "s"} for k in range(6)}
        document = {"placeopt": 1, "devices": {"d": {"count": 6}}, "tasks": tasks}
        found = data_complaints(document | {"placement": dict.fromkeys(["t3", "t0", "t5", "t1"], "d2")})
        assert found == [
            f'placement.{late}: "d2", where task "{early}" is fixed, from which it is separated'
            for late, early in (("t1", "t0"), ("t0", "t3"), ("t5", "t0"))
        ]


class TestNamesAgainstTypes:
    """The name of a device means that device alone, in every key; any other word means a key or a type."""

    HEAD = "placeopt: 1\ndevices: {cpu: {type: gpu}, gpu: , old: {type: gpu}, npu: {count: 2}, tpu: {type: npu}}\n"

    @pytest.mark.parametrize(
        ("task", "head", "allowed"),
        [
            ("time: 1, pin: gpu", "", "gpu"),
            ("time: 1, devices: gpu", "", "gpu"),
            ("time: 1, devices: [gpu, old]", "", "gpu old"),
            ("time: {gpu: 1}", "", "gpu"),
            ("time: {gpu: 1, cpu: 2}", "", "cpu gpu"),
            ("op: conv", "operations: {conv: {gpu: 1}}", "gpu"),
            ("time: 1", "placement: {t: gpu}", "gpu"),
            ("time: 1, devices: npu", "", "npu0 npu1 tpu"),  # no device is called so: the key and the type
            ("time: {npu: 1}", "", "npu0 npu1 tpu"),
            ("time: 1, pin: npu0", "", "npu0"),
            ("time: 1, pin: cpu", "", "cpu"),
        ],
    )
    def test_where_a_task_may_run(self, task: str, head: str, allowed: str) -> None:
        problem = compiled(f"{self.HEAD}{head}\ntasks:\n  t: {{{task}}}\n")
        assert [problem.device_names[d] for d in np.flatnonzero(problem.feasible[0])] == allowed.split()

    @pytest.mark.parametrize(
        ("override", "links"),
        [
            ("from: gpu, to: npu", ["gpu>npu0", "gpu>npu1", "gpu>tpu"]),
            ("from: tpu, to: [gpu, old]", ["tpu>gpu", "tpu>old"]),
            ("between: [gpu, cpu]", ["cpu>gpu", "gpu>cpu"]),
        ],
    )
    def test_links(self, override: str, links: list[str]) -> None:
        text = f"{self.HEAD}links: {{overrides: [{{{override}, latency: 7}}]}}\ntasks: {{t: {{time: 1}}}}\n"
        problem, names = compiled(text), ("cpu", "gpu", "old", "npu0", "npu1", "tpu")
        assert problem.device_names == names
        assert [f"{names[a]}>{names[b]}" for a, b in np.argwhere(problem.latency == 7)] == links

    def test_startup_and_where_tasks_are_now(self) -> None:
        current = "current: {placement: {t: gpu}, migration: {startup: {gpu: 2, npu: 3, cpu: 4}}}\n"
        problem = compiled(f"{self.HEAD}{current}tasks: {{t: {{time: 1}}, u: {{time: 1}}}}\n")
        assert problem.relocation.tolist() == [[4, 0, 0, 3, 3, 3], [4, 2, 0, 3, 3, 3]]

    def test_messages_name_a_way_out(self) -> None:
        tasks = "tasks:\n  t: {time: {gpu: 1}, devices: cpu}\n  u: {time: 1, pin: npu}\n  v: {time: 1}\n"
        assert complaints(f"{self.HEAD}placement: {{v: npu}}\n{tasks}") == [
            '3:16: placement.v: "npu" refers to 3 devices (npu0, npu1, tpu); expected one',
            "5:6: tasks.t: no device can run it: it has durations for gpu, and its devices are cpu; "
            '"gpu" is the name of a device and refers to that device only',
            '6:21: tasks.u.pin: "npu" refers to 3 devices (npu0, npu1, tpu); pin to one of them, or use devices',
        ]

    def test_a_problem_is_read_back_from_its_document(self) -> None:
        problem = build_problem(
            task_names=["t"],
            device_names=["a", "x", "c"],
            device_types=["x", "x", "c"],  # x is a device and the type of a
            duration=np.array([[1, 2, 3]]),
            latency=np.array([[0, 1, 5], [2, 0, 7], [3, 4, 0]]),
        )
        again = compile_spec(problem_document(problem))
        assert again.latency.tolist() == problem.latency.tolist()
        assert again.fingerprint() == problem.fingerprint()


class TestDevices:
    def test_counts(self) -> None:
        problem = compiled("placeopt: 1\ndevices: {a: {count: 1}, b: , c: {count: 2, type: t}}\ntasks: {}\n")
        assert problem.device_names == ("a0", "b", "c0", "c1")
        assert problem.device_types == ("a", "b", "t", "t")

    def test_names_of_all_sorts(self) -> None:
        text = (
            'placeopt: 1\ndevices: {"größe 1": , a.b/c: {type: "7"}, "*x": }\n'
            "tasks: {conv.1/weights: {time: {a.b/c: 1}}, ' ': {time: 1, after: conv.1/weights}, 010: {time: {7: 1}}, "
            "yes: {time: 1, after: [010, ' ']}, \"\\n\": {time: 1, after: yes}, 1.50: {time: 1, after: 010}, "
            "x: {time: 1, after: 1.50}}\n"
        )
        problem = compiled(text)
        assert problem.task_names == ("conv.1/weights", " ", "010", "yes", "\n", "1.50", "x")
        assert problem.device_names == ("größe 1", "a.b/c", "*x")
        edges = list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
        assert edges == [(0, 1), (1, 3), (2, 3), (2, 5), (3, 4), (5, 6)]
        assert problem.feasible[2].tolist() == [False, True, False]

    def test_power_and_energy(self) -> None:
        head = "resolution: 1 us\nobjective: energy"
        problem = one("time: 1", "power: 250 W", head)
        assert (int(problem.power_num[0]), int(problem.power_den[0])) == (250_000, 1)  # 250 W for 1 us: 250 uJ
        problem = one("time: 1", "power: 0.3 mW", head)
        assert (int(problem.power_num[0]), int(problem.power_den[0])) == (3, 10)
        problem = one("time: 1", "power: 2", head)  # bare: watts
        assert int(problem.power_num[0]) == 2000
        problem = one("time: 1", "", "objective: energy\nlinks: {default: {energy: 60 pJ/bit}}")
        assert (problem.byte_energy_num.tolist(), problem.byte_energy_den.tolist()) == ([[0]], [[1]])


class TestHeader:
    @pytest.mark.parametrize(
        ("written", "levels"),
        [
            ("makespan", [[("makespan", 1)]]),
            ("[makespan]", [[("makespan", 1)]]),
            ("{makespan: 2}", [[("makespan", 2)]]),
            ("{makespan: 1, communication: 0.001}", [[("makespan", 1), ("communication", Fraction(1, 1000))]]),
            ("[max_load, {total_cost: 1e-3, makespan: 0}]",
             [[("max_load", 1)], [("total_cost", Fraction(1, 1000)), ("makespan", 0)]]),
            ("[memory_balance, makespan]", [[("memory_balance", 1)], [("makespan", 1)]]),
        ],
    )  # fmt: skip
    def test_objectives(self, written: str, levels: list[list[tuple[Any, Any]]]) -> None:
        expected = Objective(tuple(tuple(Term(metric, Fraction(w)) for metric, w in level) for level in levels))
        assert one("time: 1", head=f"objective: {written}").objective == expected

    def test_models(self) -> None:
        problem = one("time: 1", head="contention: port\nmemory_model: peak")
        assert (problem.contention, problem.memory_model) == ("port", "peak")

    def test_resolution(self) -> None:
        assert one("time: 1").resolution == Fraction(1, 10**9)
        assert one("time: 1", head="resolution: 0.1 ms").resolution == Fraction(1, 10**4)

    def test_extra_keys_and_anchors(self) -> None:
        problem = compiled("""\
placeopt: 1
x-times: &slow {time: 7, memory: 5}
x-: [anything, {at: all}]
devices: {d: &any {count: 2}, e: *any}
tasks:
  a: {<<: *slow, time: 9}
  b: *slow
  c: {<<: [*slow, {memory: 6, after: a}]}
""")
        assert problem.device_names == ("d0", "d1", "e0", "e1")
        assert problem.duration[:, 0].tolist() == [9, 7, 7]
        assert problem.resident.tolist() == [5, 5, 5]
        assert problem.n_edges == 1


class TestEntrances:
    def test_a_file_a_text_a_dict_and_a_spec_are_one_problem(self, tmp_path: Path) -> None:
        (tmp_path / "p.yaml").write_text(DESIGN, encoding="utf-8")
        data = parse_document(DESIGN).data
        (tmp_path / "p.json").write_text(json.dumps(data), encoding="utf-8")
        spec = read_spec(tmp_path / "p.yaml")
        problems = [
            compiled(DESIGN), load(tmp_path / "p.yaml"), load(str(tmp_path / "p.json")), compile_spec(data),
            compile_spec(spec), compile_spec(Spec.model_validate(data)), compile_document(Document(data)),
        ]  # fmt: skip
        assert len({problem.fingerprint() for problem in problems}) == 1
        assert spec.best_known is None

    def test_a_dict_is_left_as_it_was(self) -> None:
        data = parse_document(edited(DESIGN, ("devices: [gpu]", "devices: [gpu, 3, true], tme: 3"))).data
        before = copy.deepcopy(data)
        with pytest.raises(SpecError, match=r"unknown key; did you mean time\?"):
            compile_spec(data)
        assert data == before

    def test_read_spec_keeps_what_the_problem_does_not_need(self) -> None:
        spec = read_spec(ROOT / "problems" / "heft-10.yaml")
        assert spec.best_known is not None
        assert (spec.best_known.objective, spec.best_known.bound) == (73, 73)
        with pytest.raises(SpecError, match=r"^none\.yaml: no such file$"):
            read_spec("none.yaml")

    @pytest.mark.parametrize("number", [np.float32, np.float16, Fraction, Decimal])
    def test_numbers_of_all_kinds_are_fine_in_code(self, number: Any) -> None:
        plain = {
            "placeopt": 1,
            "best_known": {"objective": 9, "bound": 8.5},
            "devices": {"d": {"count": 2, "memory": 100, "speed": 4, "memory_bandwidth": 2.5, "power": 3}, "7": {}},
            "links": {"default": {"bandwidth": 0.5, "latency": 2, "energy": 0.25}},
            "tasks": {
                "1": {"time": {"d": 3, "7": 4}, "output": 2, "memory": 5, "release": 1, "deadline": 90},
                "2": {"flops": 8, "bytes": 5, "after": {"1": 6}, "devices": ["d0"], "migration": 2},
                "3": {"time": 1, "after": ["1"], "pin": "7"},
            },
            "current": {"placement": {"1": "7"}, "runs_before_next_change": 0.5},
            "objective": {"makespan": 1, "communication": 0.1},
        }
        expected = compile_spec(plain).fingerprint()

        def made(value: Any) -> Any:
            if isinstance(value, dict):
                return {np.int16(key) if str(key).isdigit() else key: made(inner) for key, inner in value.items()}
            if isinstance(value, list):
                return [np.int64(item) if item.isdigit() else item for item in value]
            if isinstance(value, str):
                return np.int8(value) if value.isdigit() else value
            return np.uint8(value) if isinstance(value, int) else number(str(value))

        assert compile_spec(made(plain)).fingerprint() == expected
        plain["devices"]["d"]["count"] = number(2)  # type: ignore[index]
        assert compile_spec(plain).fingerprint() == expected

    @pytest.mark.parametrize(
        ("count", "message"),
        [
            (np.float32(2.5), "expected a whole number, got 2.5"),
            (Fraction(5, 2), "expected a whole number, got 5/2"),
            (Decimal("1e999999999"), "expected a whole number, got 1E+999999999"),
            (10**5000, "a number of thousands of digits is too large; expected at most 4096"),
        ],
        ids=["float", "fraction", "decimal", "whole"],
    )
    def test_numbers_that_are_not_whole(self, count: Any, message: str) -> None:
        document = {"placeopt": 1, "devices": {"d": {"count": count}}, "tasks": {"t": {"time": 1}}}
        assert data_complaints(document) == [f"devices.d.count: {message}"]

    @pytest.mark.parametrize(
        "number",
        [10**400, 10**5000, Fraction(10**400, 3), Decimal("1e400")],
        ids=["long", "longer", "fraction", "decimal"],
    )
    def test_numbers_beyond_all_floats_are_out_of_range(self, number: Any) -> None:
        document = {
            "placeopt": 1,
            "best_known": {"objective": number},
            "devices": {"d": {}},
            "current": {"runs_before_next_change": number},
            "tasks": {"t": {"time": number}},
            "objective": {"makespan": number},
        }
        found = data_complaints(document)
        assert [line.split(": ")[0] for line in found] == [
            "best_known.objective", "current.runs_before_next_change", "objective.makespan", "tasks.t.time"
        ]  # fmt: skip
        assert all("out of range" in line for line in found)

    def test_numbers_from_numpy_and_tuples_are_fine_in_code(self) -> None:
        problem = compile_spec({
            "placeopt": 1,
            "devices": {"d": {"memory": np.int64(100)}, "e": {}},
            "tasks": {"a": {"time": np.float64(20.5)}, "b": {"time": {"d": np.int32(4)}, "after": ("a",)}},
            "objective": ("makespan", {"communication": np.float64(0.1)}),
        })  # fmt: skip
        assert problem.duration.tolist() == [[21, 21], [4, 0]]
        assert problem.objective.levels[1] == (Term("communication", Fraction(1, 10)),)


class TestProblemFiles:
    def test_there_are_some(self) -> None:
        assert len(PROBLEMS) >= 3

    @pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
    def test_load_and_name_their_schema_in_the_first_line(self, path: Path) -> None:
        assert load(path).n_tasks > 0
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        assert first + "\n" == MODELINE.format(schema="placeopt.schema.json")

    def test_the_schema_beside_them_is_in_step(self) -> None:
        """Made by `placeopt schema > problems/placeopt.schema.json`."""
        committed = (ROOT / "problems" / "placeopt.schema.json").read_text(encoding="utf-8")
        assert committed == json.dumps(json_schema(), indent=1) + "\n"

    def test_the_schema_knows_every_key_that_the_files_use(self) -> None:
        schema = json_schema()
        assert schema["additionalProperties"] is False
        assert set(schema["patternProperties"]) == {"^x-"}
        assert schema["required"] == ["placeopt", "devices"]
        keys = {key for path in PROBLEMS for key in parse_document(path.read_text(encoding="utf-8")).data}
        assert {key for key in keys if not key.startswith("x-")} <= set(schema["properties"])
        override = schema["$defs"]["LinkOverride"]["properties"]
        assert {"from", "to", "between"} <= set(override)
        assert "source" not in override


def check_invariants(problem: Problem) -> None:
    """What the docstring of Problem promises."""
    n, m, e = problem.n_tasks, problem.n_devices, problem.n_edges
    shapes = {
        (n, m): ("duration", "feasible"),
        (n,): ("resident", "output", "scratch", "release", "deadline", "group", "order"),
        (m,): ("capacity", "power_num", "power_den", "device_class"),
        (e,): ("edge_source", "edge_target", "payload", "shared", "in_edge"),
        (m, m): ("latency", "byte_ticks_num", "byte_ticks_den", "byte_energy_num", "byte_energy_den"),
        (n + 1,): ("out_start", "in_start"),
        (len(problem.separation), 2): ("separation",),
    }
    for shape, names in shapes.items():
        for name in names:
            array = getattr(problem, name)
            assert array.shape == shape, name
            assert array.dtype == (np.bool_ if name in ("feasible", "shared") else np.int64), name
            assert not array.flags.writeable, name
            assert not len(array) or array.min() >= 0, name
    assert len(set(problem.task_names)) == n
    assert len(set(problem.device_names)) == m == len(problem.device_types)
    assert problem.resolution > 0
    assert not problem.duration[~problem.feasible].any()
    assert n == 0 or problem.feasible.any(axis=1).all()
    pairs = list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    for i in range(n):
        out = range(int(problem.out_start[i]), int(problem.out_start[i + 1]))
        assert [pairs[edge][0] for edge in out] == [i] * len(out)
        into = problem.in_edge[problem.in_start[i] : problem.in_start[i + 1]].tolist()
        assert [pairs[edge][1] for edge in into] == [i] * len(into)
    assert int(problem.out_start[n]) == int(problem.in_start[n]) == e
    place = {task: k for k, task in enumerate(problem.order.tolist())}
    assert sorted(place) == list(range(n))
    assert all(place[a] < place[b] for a, b in pairs)
    for labels in (problem.group.tolist(), problem.device_class.tolist()):
        assert list(dict.fromkeys(labels)) == list(range(len(set(labels))))
    assert all(a < b for a, b in problem.separation.tolist())
    assert not np.diagonal(problem.latency).any()
    for num, den in (
        ("byte_ticks_num", "byte_ticks_den"),
        ("byte_energy_num", "byte_energy_den"),
        ("power_num", "power_den"),
    ):
        products = [a * b for a, b in zip(getattr(problem, num).flat, getattr(problem, den).flat, strict=True)]
        assert all(0 <= product < 2**62 for product in products)
        assert getattr(problem, den).min(initial=1) >= 1
    assert problem.objective.levels
    assert all(level for level in problem.objective.levels)


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
def test_invariants_of_the_problem_files(path: Path) -> None:
    check_invariants(load(path))


WHOLE = """\
placeopt: 1
name: everything
resolution: 1 us
units: {time: ms, memory: MiB}
best_known: {objective: 9, bound: 3.5}
operations:
  conv: {host: 4 us, card: 2}
  pool: 3 us
devices:
  cpu: {type: host, memory: 8 GiB, speed: 1 TFLOP/s, power: 65 W}
  gpu:
    {type: card, count: 2, memory: 16 GiB, speed: 14 TFLOP/s, memory_bandwidth: 900 GB/s, overhead: 5 us, features: [t]}
links:
  default: {bandwidth: 12 GB/s, latency: 10 us, energy: 60 pJ/B}
  overrides:
    - {between: [gpu, card], bandwidth: 300 GB/s}
    - {from: cpu, to: [gpu0, card], latency: 1}
tasks:
  a: {op: conv, output: 1 MiB, memory: {resident: 9, output: 3 MiB, scratch: 1}}
  b: {time: 5 us, after: a, colocate: g, requires: t, release: 3 us}
  c: {time: {host: 3 us, gpu0: 1}, after: {a: 512 KiB, b: }, devices: [cpu, gpu]}
  d: {flops: 3 GFLOP, bytes: 1 GB, after: [c], pin: gpu1, separate: s}
  e: {op: pool, after: [a, d], colocate: [g, h], separate: s, release: 1, deadline: 4}
placement: {a: cpu, e: gpu0}
objective: [makespan, {communication: 1, energy: 0.5}]
contention: port
memory_model: peak
"""

JUNK: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 10**30, -0.5, 1e300, float("nan"), float("inf"), "", "a", "gpu", "x-y", "*", "5 us",
    "12 GB/s", "0 B/s", "1e400", "-3 MiB", "é\n", "9" * 500, [], [[]], ["a"], ["gpu", "gpu"], [1, None], {}, {"a": 1},
    {"a": {}}, {"tasks": 1}, {"~bare": "x"}, {"": 1}, {1: 2}, [{}], "makespan", "1152921504606846976", 2**60, 2**63,
)  # fmt: skip


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [*([path] if path else []), *itertools.chain.from_iterable(places(v, (*path, k)) for k, v in inner)]


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """A valid document with a few things deleted, renamed, copied, swapped or replaced by junk."""
    data = parse_document(WHOLE).data
    for _ in range(draw(st.integers(1, 4))):
        paths = places(data)
        if not paths:
            break
        *parents, last = draw(st.sampled_from(paths))
        holder = data
        for part in parents:
            holder = holder[part]
        action = draw(st.sampled_from(["junk", "junk", "delete", "rename", "copy", "nest"]))
        if action == "junk":
            holder[last] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        elif action == "delete":
            del holder[last]
        elif action == "nest":
            holder[last] = draw(st.sampled_from([[holder[last]], {"a": holder[last]}]))
        elif action == "copy":
            other = draw(st.sampled_from(paths))
            value = data
            for part in other:
                value = value[part]
            holder[last] = copy.deepcopy(value)
        elif isinstance(holder, dict):
            name = draw(
                st.sampled_from(["", "x", "gpu0", "a", "time", "tim", "from", "1", "a.b", f"{last}s", "~quantity"])
            )
            holder[name] = holder.pop(last)
    return data


def outcome(document: Document) -> Problem | SpecError:
    """The problem, or the error that lists what is wrong."""
    try:
        return compile_document(document)
    except SpecError as error:
        return error


def test_the_mutants_come_from_a_sound_document() -> None:
    check_invariants(compiled(WHOLE))


@settings(deadline=None, max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(mutants())
def test_mutants_compile_or_raise_a_spec_error(data: Any) -> None:
    found = outcome(Document(data))
    if isinstance(found, Problem):
        check_invariants(found)
        return
    assert found.issues
    for issue in found.issues:
        assert issue.message
        assert str(issue).isprintable()
        assert len(issue.message) < 600
    assert len({(issue.path, issue.message) for issue in found.issues}) == len(found.issues)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(mutants())
def test_mutants_as_json_say_the_same_with_places(data: Any) -> None:
    text = json.dumps(data)
    document = parse_document(text, file="m", json_format=True)
    found = outcome(document)
    if isinstance(found, SpecError):
        assert all(issue.line == 1 and 1 <= (issue.column or 0) <= len(text) for issue in found.issues)
    else:
        check_invariants(found)


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_mutants_of_the_text_compile_or_raise_a_document_error(data: st.DataObject) -> None:
    """Pieces of the text are deleted, doubled, or replaced by characters that mean something to YAML."""
    text = WHOLE
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        new = data.draw(
            st.sampled_from(
                ["", text[start:end] * 2, ":", "\n", " ", "\t", "- ", "{", "]", "'", "&a ", "*a", "#", "\x00", "é"]
            )
        )
        text = text[:start] + new + text[end:]
    try:
        document = parse_document(text, file="m")
    except DocumentError as error:
        assert len(error.issues) == 1  # noqa: PT017  a syntax error stands alone
        return
    found = outcome(document)
    if isinstance(found, Problem):
        check_invariants(found)
    else:
        lines = [(issue.line or 0, issue.column or 0) for issue in found.issues]
        assert lines == sorted(lines)


def test_numbers_below_the_smallest_float_are_zero() -> None:
    """Exactly, 1e-999999999 would have a billion digits."""
    text = "placeopt: 1\nbudgets: {b: 1e-999999999}\ndevices: {d: {}}\ntasks: {a: {time: 1, uses: {b: 0e-999999999}}}\n"
    resources = compiled(text).resources
    assert resources is not None
    assert (resources.capacity.tolist(), resources.amounts(0).tolist()) == ([0], [[0]])
