"""Files of buffers, errors in them, and the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import placeopt as po
from tests.support.commandline import run

TEXT = """id,lower,upper,size,alignment,fixed
a,0,4,10,,
b,2,6,20,8,
c,5,9,10,,0
"""


def written(tmp_path: Path, text: str = TEXT, name: str = "buffers.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_csv_and_json_state_the_same(tmp_path: Path) -> None:
    found = po.allocate(po.load_buffers(written(tmp_path)))
    assert (found.height, found.bound, found.gap) == (36, 36, 0.0)
    for name in ("out.csv", "out.json"):
        po.write_allocation(tmp_path / name, found)
        again = po.load_buffers(tmp_path / name)
        assert again.names == ("a", "b", "c")
        assert again.alignment.tolist() == [1, 8, 1]
        assert again.fixed == (None, None, 0)
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    document = json.loads((tmp_path / "out.json").read_text())
    assert found.offset is not None
    assert [int(row["offset"]) for row in rows] == found.offset.tolist()
    assert [buffer["offset"] for buffer in document["buffers"]] == found.offset.tolist()


def test_names_of_columns_and_notes(tmp_path: Path) -> None:
    text = "\ufeffstart,end,size,hint,gaps\n0,2,5,-1,\n1,3,5,,1-2\n"
    problem = po.load_buffers(written(tmp_path, text))
    assert problem.names == ("0", "1")
    assert problem.notes[0] == "ignored columns: hint, gaps"
    assert "gaps are not supported" in problem.notes[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a first line id,lower,upper,size"),
        (
            "id,lower,uper,size\na,1,2,3\n",
            ':1: the column "upper" is missing; the first line names id, lower, uper, size',
        ),
        ("lower,upper,size,size\n", ':1: the column "size" occurs twice'),
        ("id,lower,upper,size\na,1,2,3,4\n", ":2: 5 cells; expected 4"),
        ("id,lower,upper,size\na,2,2,3\n", ":2: upper: 2 is not after lower, 2"),
        ("id,lower,upper,size\na,1,2,0\n", r":2: size: 0; expected a whole number from 1 to 2\^60"),
        ("id,lower,upper,size\na,1,2,1.5\n", r":2: size: .*1\.5.*; expected a whole number"),
        ("id,lower,upper,size\na,1,2\n", ":2: size: is empty; expected a whole number"),
        ("id,lower,upper,size\na,1,2,3\na,1,2,3\n", ':3: id: a second buffer is called "a"'),
        (f"id,lower,upper,size\na,1,2,{2**61}\n", ":2: size: 2305843009213693952; expected"),
        (f"lower,upper,size\n1,2,{2**60}\n1,2,{2**60 - 1}\n1,2,1\n", r"in all; expected less than 2\^61"),
        ("id,lower,upper,size,alignment,fixed\na,1,2,3,4,6\n", ":2: fixed: 6 is not a multiple of the alignment 4"),
        ('id,lower,upper,size\n"a,1,2,3\n', ":2: is not CSV"),
        ('{"placeopt_buffers": 1, "buffers": [{"lower": 1, "upper": 1, "size": 2}]}', r"\.upper: 1 is not after"),
        ('{"placeopt_buffers": 1, "buffers": [{"lower": 1, "size": 2}]}', r"buffers\[0\]: upper is missing"),
    ],
)  # fmt: skip
def test_errors_state_their_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(po.SpecError, match=message):
        po.load_buffers(written(tmp_path, text))


def test_no_file() -> None:
    with pytest.raises(po.DocumentError, match=r"missing\.csv: no such file"):
        po.load_buffers("missing.csv")


class TestCommand:
    def test_the_least_height(self, tmp_path: Path) -> None:
        out = tmp_path / "out.csv"
        done = run("allocate", str(written(tmp_path)), "--out", str(out), "--workers", "1")
        assert done.code == 0
        assert "36 B" in done.out
        assert out.read_text().startswith("id,lower,upper,size,alignment,fixed,offset\na,0,4,10,1,,")

    def test_a_capacity_that_is_too_small(self, tmp_path: Path) -> None:
        out = tmp_path / "out.csv"
        done = run("allocate", str(written(tmp_path)), "--capacity", "35", "--out", str(out))
        assert done.code == 1
        assert "cannot fit" in done.out
        assert not out.exists()

    def test_json(self, tmp_path: Path) -> None:
        done = run("allocate", str(written(tmp_path)), "--capacity", "1KiB", "--json")
        document = json.loads(done.out)
        assert (document["fits"], document["bound"], document["capacity"]) == (True, 30, 1024)

    def test_a_picture(self, tmp_path: Path) -> None:
        plot = tmp_path / "memory.svg"
        assert run("allocate", str(written(tmp_path)), "--capacity", "40", "--plot", str(plot)).code == 0
        assert "<svg" in plot.read_text()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--capacity", "much"], "--capacity"),
            (["--time-limit", "0"], "--time-limit"),
            (["--out", "missing/out.csv"], "there is no folder missing"),
        ],
    )
    def test_wrong_options(self, options: list[str], message: str, tmp_path: Path) -> None:
        done = run("allocate", str(written(tmp_path)), *options)
        assert done.code == 2
        assert message in done.err


def test_what_is_missing(tmp_path: Path) -> None:
    """At 2, 60, 30 and 9 bytes are live: 99 in all, and 64 + 64 + 9 at multiples of 64."""
    rows = "id,lower,upper,size,alignment\na,0,3,60,64\nb,1,4,30,64\nc,2,9,9,64\nd,0,1,3,1\n"
    path = written(tmp_path, rows)
    found = run("allocate", path, "--capacity", "136B")
    assert found.code == 1
    text = " ".join(found.out.split())
    assert "missing at least 1 B fullest 99 B in 3 buffers at 2: a 60 B, b 30 B, c 9 B" in text
    assert "alignment without it, the buffers fit" in text
    assert "without it, at least 1 B are missing" in run("allocate", path, "--capacity", "98B").out
    assert run("allocate", path, "--capacity", "137B").code == 0
