"""Documents: YAML 1.2 and JSON as plain data, where everything stands, and texts that mean harm."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt.errors import DocumentError, Issue, in_file_order, listing, path_text, suggestion
from placeopt.io.document import Document, parse_document, read_document


def yaml(text: str) -> Any:
    """The data of a YAML text without faults."""
    document = parse_document(text, file="d.yaml")
    assert document.faults == ()
    return document.data


def failure(text: str, *, json_format: bool = False) -> str:
    """Why a text cannot be read."""
    try:
        document = parse_document(text, file="d", json_format=json_format)
    except DocumentError as error:
        return str(error)
    return f"it can: {document.data}"


def faults(text: str, *, json_format: bool = False) -> tuple[Any, list[str]]:
    """The data of a text, and its faults."""
    document = parse_document(text, file="d", json_format=json_format)
    return document.data, [str(fault) for fault in document.faults]


class TestYaml:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("5", 5), ("-5", -5), ("+5", 5), ("010", 10), ("0", 0), ("1.5", 1.5), (".5", 0.5), ("5.", 5.0),
            ("1e9", 1e9), ("1E-3", 1e-3), ("-1.5e+3", -1500.0), ("true", True), ("True", True), ("FALSE", False),
            ("null", None), ("Null", None), ("~", None), ("", None), (".inf", math.inf), ("-.Inf", -math.inf),
        ],
    )  # fmt: skip
    def test_scalars_of_version_1_2(self, text: str, value: object) -> None:
        found = yaml(f"a: {text}")["a"]
        assert found == value
        assert type(found).__mro__[-2] is type(value).__mro__[-2]  # int, float or bool, perhaps by way of a subclass

    @pytest.mark.parametrize(
        "text",
        ["yes", "no", "on", "off", "y", "n", "Yes", "NO", "1:30", "190:20:30", "2024-01-31", "2024-01-31 10:00:00",
         "0x10", "0o7", "0b1", "1_000", "1e400", ".", "+", "e5", "1e", "12 GB/s", "nan", "inf", "tRUE", "=",
         "9" * 1000, "١٢"],
    )  # fmt: skip
    def test_texts_that_older_versions_take_for_something_else(self, text: str) -> None:
        assert yaml(f"a: {text}") == {"a": text}

    @pytest.mark.parametrize("text", ["5", "true", "null", "1.5", ".nan", "<<"])
    def test_quoted_and_block_scalars_are_text(self, text: str) -> None:
        assert yaml(f"a: '{text}'\nb: \"{text}\"\nc: |-\n  {text}\nd: >-\n  {text}\n") == dict.fromkeys("abcd", text)

    def test_not_a_number(self) -> None:
        assert math.isnan(yaml("a: .nan")["a"])

    def test_numbers_remember_how_they_were_written(self) -> None:
        texts = ["010", "1.50", "1e9", "+5", ".5", "-0", "0.1000000000000000000000000001", "5", "1.5"]
        assert [str(number) for number in yaml(f"[{', '.join(texts)}]")] == texts
        assert yaml("[010, 1.50]") == [10, 1.5]
        assert json.dumps(yaml("[010, 1.50]")) == "[10, 1.5]"
        assert [type(number) for number in yaml("[5, 1.5, 10]")] == [int, float, int]

    @pytest.mark.parametrize("key", ["5", "010", "yes", "true", "null", "~", "1.50", ".nan", "2024-01-31", "a b", "ß"])
    def test_keys_are_always_text(self, key: str) -> None:
        assert yaml(f"{key}: 1") == {key: 1}
        assert yaml(f"{{{key}: 1}}") == {key: 1}

    def test_tags_of_plain_data(self) -> None:
        assert yaml("a: !!str 5\nb: !!int '5'\nc: !!float 5.5\nd: !!bool true\ne: !!null ''\nf: ! 5") == {
            "a": "5", "b": 5, "c": 5.5, "d": True, "e": None, "f": "5",
        }  # fmt: skip
        assert yaml("a: !!map {x: 1}\nb: !!seq [1]\nc: !<tag:yaml.org,2002:int> 7") == {"a": {"x": 1}, "b": [1], "c": 7}

    @pytest.mark.parametrize(
        ("text", "data", "tag"),
        [
            ("!!python/object/apply:os.system ['touch hacked']", ["touch hacked"], "!!python/object/apply:os.system"),
            ("!!python/name:os.system ''", "", "!!python/name:os.system"),
            ("!!timestamp 2024-01-31", "2024-01-31", "!!timestamp"),
            ("!!binary aGk=", "aGk=", "!!binary"),
            ("!local 5", "5", "!local"),
            ("!!set {x, y}", {"x": None, "y": None}, "!!set"),
            ("!!str [x]", ["x"], "!!str"),
            ("!!map [x]", ["x"], "!!map"),
            ("!!seq x", "x", "!!seq"),
        ],
    )
    def test_other_tags_are_faults_and_do_nothing(
        self, text: str, data: Any, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert faults(f"a:\n  - {text}\n") == ({"a": [data]}, [f"d:2:5: a[0]: unknown tag {tag}; expected plain YAML"])
        assert list(tmp_path.iterdir()) == []

    def test_anchors_share_and_may_be_given_anew(self) -> None:
        data = yaml("a: &x {k: 1}\nb: *x\nc: &y 5\nd: [*y, *x]\ne: &y 6\nf: *y\n&k g: h\ni: *k")
        expected = {"a": {"k": 1}, "b": {"k": 1}, "c": 5, "d": [5, {"k": 1}], "e": 6, "f": 6, "g": "h", "i": "g"}
        assert data == expected
        assert data["b"] is data["a"]

    def test_merge_keys(self) -> None:
        data = yaml(
            "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\n"
            "one: {<<: *base, b: 5}\ntwo: {<<: [*base, *more], d: 6}\n"
            "nested: &nested {<<: *more, e: 7}\nthree: {<<: *nested}\ninline: {<<: {f: 8}, a: 9}\n"
        )
        assert data["one"] == {"b": 5, "a": 1}
        assert data["two"] == {"d": 6, "a": 1, "b": 2, "c": 4}
        assert data["three"] == {"e": 7, "b": 3, "c": 4}
        assert data["inline"] == {"a": 9, "f": 8}
        assert data["base"] == {"a": 1, "b": 2}
        assert yaml("{'<<': 1}") == {"<<": 1}

    @pytest.mark.parametrize("value", ["5", "[{a: 1}, 5]", "[[]]", "text", "null"])
    def test_merging_what_is_no_mapping(self, value: str) -> None:
        assert faults(f"x: {{<<: {value}, b: 1}}") == (
            {"x": {"b": 1}},
            ["d:1:9: x: << needs a mapping or a list of mappings"],
        )

    def test_what_contains_itself(self) -> None:
        assert faults("a: &x [1, *x, {b: *x}]") == (
            {"a": [1, None, {"b": None}]},
            [
                "d:1:11: a[1]: contains itself: *x is inside &x",
                "d:1:19: a[2].b: contains itself: *x is inside &x",
            ],
        )
        assert faults("a: &x {b: 1, <<: *x}") == (
            {"a": {"b": 1}},
            ["d:1:18: a: contains itself: *x is inside &x"],
        )

    def test_keys_given_twice_keep_their_first_value(self) -> None:
        assert faults("a: 1\nb:\n  c: 1\n  d: 2\n  c: {e: 3}\na: 4\nl: [{x: 1, x: 2}]") == (
            {"a": 1, "b": {"c": 1, "d": 2}, "l": [{"x": 1}]},
            [
                'd:5:3: b.c: duplicate name "c", first given on line 3',
                'd:6:1: a: duplicate name "a", first given on line 1',
                'd:7:12: l[0].x: duplicate name "x", first given on line 7',
            ],
        )

    @pytest.mark.parametrize(
        ("key", "column"), [("[x] ", 1), ("{x: 1} ", 1), ("*k ", 1), ("? [x, {y: z}]\n", 3), ("? - x\n  - y\n", 3)]
    )
    def test_keys_that_are_no_text(self, key: str, column: int) -> None:
        assert faults(f"k: &k 1\n{key}: {{a: 1}}\nb: 2") == (
            {"k": 1, "b": 2},
            [f"d:2:{column}: a key must be plain text, not a list, a mapping or an alias"],
        )

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("a: 1\n\tb: 2", "d:2:1: is not valid YAML: a tab in the indentation; expected spaces"),
            ("a: b: c", "d:1:5: is not valid YAML: mapping values are not allowed in this context"),
            ("a: [1, 2\nb: 3", "d:2:2: is not valid YAML: did not find expected ',' or ']'"),
            ("a: 'x\n", "d:2:1: is not valid YAML: found unexpected end of stream"),
            ("a: @x", "d:1:4: is not valid YAML: found character that cannot start any token"),
            ("a: *x", "d:1:4: is not valid YAML: unknown anchor &x"),
            ("a: 1\n---\nb: 2\n", "d:2:1: contains several documents; expected one"),
            ("%YAML 3.0\n---\na: 1", "d:1:1: is not valid YAML: found incompatible YAML document"),
            ("a: 1\nb: x\x00y", "d:2:5: is not valid YAML: contains the control character 0x00"),
            ("ab: \x1b[0m", "d:1:5: is not valid YAML: contains the control character 0x1b"),
            ("a: \udcff", "d:1:4: is not valid YAML: contains the control character 0xdcff"),
            ('a: "\\ud800"', "d:1:7: is not valid YAML: found invalid Unicode character escape code"),
        ],
    )
    def test_syntax_errors(self, text: str, answer: str) -> None:
        assert failure(text) == answer

    @pytest.mark.parametrize("text", ["--- {a: 1}\n", "a: 1\n...\n", "%YAML 1.2\n---\na: 1", "\ufeffa: 1", "{a: 1,}"])
    def test_one_document_may_be_marked_as_such(self, text: str) -> None:
        assert yaml(text) == {"a": 1}

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_line_ends(self, newline: str, tmp_path: Path) -> None:
        (tmp_path / "d.yaml").write_bytes(f"\ufeffa: 1{newline}b:{newline}  c: 2{newline}".encode())
        document = read_document(tmp_path / "d.yaml")
        assert document.data == {"a": 1, "b": {"c": 2}}
        assert document.issue("x", ("b", "c")).line == 3
        assert document.issue("x", ("b", "c")).column == 6


class TestHarm:
    @pytest.mark.parametrize(
        "text",
        ["[" * 100_000, "{a: " * 100_000, "a: " + "[" * 101 + "]" * 101, "- " * 100_000,
         "\n".join(" " * depth + "a:" for depth in range(3000)), "? " * 50_000],
    )  # fmt: skip
    def test_deep_nesting(self, text: str) -> None:
        assert "is nested too deeply, more than 100 levels" in failure(text)

    def test_nesting_up_to_the_limit(self) -> None:
        assert yaml("[" * 100 + "]" * 100)
        assert failure("[" * 101 + "]" * 101) == "d:1:101: is nested too deeply, more than 100 levels"

    def test_deep_json(self) -> None:
        assert failure("[" * 100_000 + "]" * 100_000, json_format=True) == "d: is nested too deeply"
        document = parse_document('{"a": ' + "[" * 300 + "]" * 300 + "}", file="d", json_format=True)
        assert str(document.issue("x", ("a",))) == "d: a: x"

    LAUGHS = (
        "a0: &a0 [lol, lol]\n" + "".join(f"a{k + 1}: &a{k + 1} [{', '.join(9 * [f'*a{k}'])}]\n" for k in range(9)),
        "a0: &a0 {k: 1}\n" + "".join(f"a{k + 1}: &a{k + 1} {{l: *a{k}, r: *a{k}}}\n" for k in range(40)),
        "a0: &a0 {k: 1}\n" + "".join(f"a{k + 1}: &a{k + 1} {{<<: [*a{k}, *a{k}], k{k}: 1}}\n" for k in range(40)),
    )

    @pytest.mark.parametrize("text", LAUGHS, ids=["lists", "mappings", "merges"])
    def test_aliases_that_multiply(self, text: str) -> None:
        assert failure(text).endswith(": has aliases that expand to far more entries than the file has")

    def test_aliases_that_stand_for_more_than_memory_suffices_for(self) -> None:
        # 140 kB of text for 420,000 entries: as tasks they would take hundreds of times the size of the file.
        text = "a: &a [" + "1, " * 20 + "]\nb:\n" + "  - *a\n" * 20_000
        assert failure(text).endswith(": has aliases that expand to far more entries than the file has")
        assert len(yaml(text.replace("  - *a\n", "", 15_000))["b"]) == 5000

    def test_aliases_that_multiply_within_reason(self) -> None:
        assert len(yaml("a: &a [" + "1, " * 500 + "]\nb: [" + "*a, " * 150 + "]")["b"]) == 150

    def test_numbers_without_end(self) -> None:
        digits = "9" * 5000
        assert yaml(f"a: {digits}") == {"a": digits}
        assert failure(f"[{digits}]", json_format=True) == "d: is not valid JSON: a number has thousands of digits"


class TestJson:
    def test_data(self) -> None:
        text = '{"a": [1, -2.5, 1e3, true, false, null, "x\\u00e9\\n\\ud83d\\ude00/\\/"], "b": {}, "": ""}'
        assert faults(text, json_format=True) == (json.loads(text), [])
        assert math.isnan(parse_document('{"a": NaN}', json_format=True).data["a"])

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ('{"a": 1,\n "b" 2}', "d:2:6: is not valid JSON: Expecting ':' delimiter"),
            ("{'a': 1}", "d:1:2: is not valid JSON: Expecting property name enclosed in double quotes"),
            ('{"a": 1}\n\n{"b": 2}', "d:3:1: is not valid JSON: Extra data"),
            ('{"a": "x\ny"}', "d:1:9: is not valid JSON: Invalid control character at"),
            ('{"a": 1', "d:1:8: is not valid JSON: Expecting ',' delimiter"),
            ('{"a": "\\ud800"}', r"d: is not valid JSON: unpaired surrogate (\ud800 to \udfff)"),
            ('{"\\uDFFF": 1}', r"d: is not valid JSON: unpaired surrogate (\ud800 to \udfff)"),
        ],
    )
    def test_syntax_errors(self, text: str, answer: str) -> None:
        assert failure(text, json_format=True) == answer

    @pytest.mark.parametrize("rest", ["]", "}", ' {"b": 1}'])
    def test_syntax_errors_after_a_duplicate_key(self, rest: str) -> None:
        with pytest.raises(DocumentError, match=r"d:1:17: is not valid JSON: Extra data"):
            parse_document('{"a": 1, "a": 2}' + rest.lstrip(" "), file="d", json_format=True)

    def test_keys_given_twice_are_found_in_json_that_is_no_yaml(self) -> None:
        text = '{"a": {"\\ud83d\\ude00": [1],\t"b": "}{][,:\\"",\r\n"\\ud83d\\ude00": {"c": 1, "c": 2}}, "a": "\\/"}'
        assert faults(text, json_format=True) == (
            {"a": {"😀": [1], "b": '}{][,:"'}},
            [
                'd:2:1: a.😀: duplicate name "😀", first given on line 1',
                'd:2:26: a: duplicate name "c", first given on line 2',  # in what is dropped
                'd:2:36: a: duplicate name "a", first given on line 1',
            ],
        )


class TestPlaces:
    YAML = """\
top: &top {x: 1}
list:
  - one
  - {two: 2, 'th ree': [3]}
alias: *top
merged:
  <<: *top
  y: 2
names: [a, b, 7]
"""

    @pytest.mark.parametrize(
        ("path", "at_key", "place", "known"),
        [
            ((), False, (1, 1), ()),
            (("top",), False, (1, 6), ("top",)),
            (("top",), True, (1, 1), ("top",)),
            (("top", "x"), True, (1, 12), ("top", "x")),
            (("list", 1), False, (4, 5), ("list", 1)),
            (("list", 1, "th ree", 0), False, (4, 25), ("list", 1, "th ree", 0)),
            (("list", 1, "th ree"), True, (4, 14), ("list", 1, "th ree")),
            (("alias",), False, (5, 8), ("alias",)),  # where the alias stands
            (("alias", "x"), False, (1, 15), ("alias", "x")),  # where what it stands for stands
            (("merged", "x"), True, (1, 12), ("merged", "x")),
            (("merged", "y"), False, (8, 6), ("merged", "y")),
            (("merged", "z"), True, (7, 3), ("merged",)),  # no such key: the mapping
            (("none", "such"), False, (1, 1), ()),
            (("list", 9), False, (3, 3), ("list",)),
            (("names", "b"), True, (9, 12), ("names", 1)),  # a name in a list of names is its place there
            (("names", "7"), False, (9, 15), ("names", 2)),
            (("top", 0, "x"), False, (1, 15), ("top", "x")),  # a list of one that is not written as a list
            (("top", "x", "deeper"), False, (1, 15), ("top", "x")),
        ],
    )
    def test_in_yaml(
        self, path: tuple[str | int, ...], at_key: bool, place: tuple[int, int], known: tuple[str | int, ...]
    ) -> None:
        issue = parse_document(self.YAML, file="d").issue("x", path, at_key=at_key)
        assert (issue.line, issue.column) == place
        assert issue.path == known

    def test_in_json(self) -> None:
        document = parse_document('{"a": [1,\n  {"b\\"": {}}],\n"c": ""}', file="d", json_format=True)
        assert str(document.issue("x", ("a", 1, 'b"'), at_key=True)) == 'd:2:4: a[1]."b"": x'
        assert str(document.issue("x", ("a", 1, 'b"'))) == 'd:2:11: a[1]."b"": x'
        assert str(document.issue("x", ("c",))) == "d:3:6: c: x"
        assert str(document.issue("x", ())) == "d:1:1: x"

    def test_of_data_made_in_code_are_unknown(self) -> None:
        assert Document({"a": [1]}).issue("x", ("a", 0)) == Issue("x", ("a", 0))
        assert str(Document({"a": [1]}).issue("x", ("a", 0))) == "a[0]: x"

    names = st.text(st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=["Cc", "Cs"]), max_size=5)
    plain = st.recursive(
        st.none() | st.booleans() | st.integers(-(10**9), 10**9) | names,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
        max_leaves=15,
    )

    @settings(deadline=None)
    @given(plain, st.sampled_from([None, 1, "\t"]))
    def test_every_value_is_found_in_json(self, data: Any, indent: int | str | None) -> None:
        text = json.dumps(data, indent=indent, ensure_ascii=False)
        document = parse_document(text, file="d", json_format=True)
        starts = [0, *(k + 1 for k, character in enumerate(text) if character == "\n")]

        def check(value: Any, path: tuple[str | int, ...]) -> None:
            issue = document.issue("x", path)
            assert issue.path == path
            assert issue.line is not None
            assert issue.column is not None
            here = text[starts[issue.line - 1] + issue.column - 1 :]
            assert json.JSONDecoder().raw_decode(here)[0] == value
            for part, inner in value.items() if isinstance(value, dict) else enumerate(value):
                if isinstance(inner, dict | list):
                    check(inner, (*path, part))

        if isinstance(data, dict | list):
            check(data, ())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize("number", ["123456789.123456789", "3.00000000000000000001", "1e-400", "1e400", "0.50", "0.5"])
def test_numbers_in_json_keep_their_digits(number: str) -> None:
    for text in (f'{{"a": {number}}}', f'{{"b": 1, "b": 1, "a": {number}}}'):  # a duplicate key is read in another way
        found, expected = parse_document(text, json_format=True).data["a"], parse_document(f"a: {number}").data["a"]
        assert (str(found), type(found)) == (str(expected), type(expected)) == (number, type(expected))


@settings(deadline=None)
@given(json_values)
def test_json_is_yaml(data: Any) -> None:
    """What JSON writes, the YAML reader reads as the same data (but for JSON's pairs of surrogates)."""
    text = json.dumps(data)
    if not any(ord(character) > 0xFFFF for character in json.dumps(data, ensure_ascii=False)):
        assert parse_document(text, json_format=False).data == data
    assert parse_document(text, json_format=True).data == data


def read(text: str | Path, *, json_format: bool = False) -> Document | DocumentError:
    """The document in a text or a file, or the error that says why there is none."""
    try:
        if isinstance(text, Path):
            return read_document(text)
        return parse_document(text, file="d", json_format=json_format)
    except DocumentError as error:
        return error


PIECES = ("a: ", "- ", "? ", "\n", "\n  ", "&x ", "*x", "<<: ", "{", "}", "[", "]", ", ", "!!int ", "1", "'", '"', "a")


@settings(deadline=None, max_examples=400)
@given(
    st.text(max_size=60)
    | st.text("ab1 \n\t:-?[]{},&*!|>'\"%@`#<~.=", max_size=60)
    | st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.booleans(),
)
def test_any_text_is_a_document_or_a_document_error(text: str, json_format: bool) -> None:
    document = read(text, json_format=json_format)
    if isinstance(document, DocumentError):
        (issue,) = document.issues
        assert (issue.file, issue.path) == ("d", ())
        return
    for fault in document.faults:
        assert fault.line is not None
        assert 1 <= fault.line <= len(text) + 1
    assert document.data is None or document.issue("x", ()).line is not None


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_document_or_a_document_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(content)
    document = read(path)
    if isinstance(document, DocumentError):
        assert len(document.issues) == 1
    else:
        assert document.data is None or isinstance(document.data, dict | list | str | int | float)


class TestMessages:
    @pytest.mark.parametrize(
        ("path", "text"),
        [
            ((), ""),
            (("tasks", "conv2", "after", 0), "tasks.conv2.after[0]"),
            (("tasks", "a.b", "time"), 'tasks."a.b".time'),
            (("tasks", "layer/conv-1_x", "~"), "tasks.layer/conv-1_x.~"),
            (("tasks", "", "a b", "c[0]"), 'tasks.""."a b"."c[0]"'),
            ((0, "a"), "[0].a"),
        ],
    )
    def test_path_text(self, path: tuple[str | int, ...], text: str) -> None:
        assert path_text(path) == text

    @pytest.mark.parametrize(
        ("name", "known", "text"),
        [
            ("gpu", ["cpu", "GPU"], "; did you mean GPU?"),
            ("gib", ["GiB", "Gib", "gig"], "; did you mean GiB or Gib?"),
            ("bandwith", ["latency", "bandwidth"], "; did you mean bandwidth?"),
            ("x", ["latency"], ""),
            ("x", [], ""),
        ],
    )
    def test_suggestion(self, name: str, known: list[str], text: str) -> None:
        assert suggestion(name, known) == text

    def test_listing(self) -> None:
        assert listing([]) == "none"
        assert listing(["a", "b"]) == "a, b"
        assert listing([str(k) for k in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
        assert listing(["a\nb", "c"], 1) == r"a\nb and 1 more"

    def test_issues_come_in_file_order_and_once(self) -> None:
        first, second = Issue("m", ("a",), "f", 2, 3), Issue("m", ("b",), "f", 2, 5)
        again, other, code = Issue("m", ("c",), "f", 2, 3), Issue("m", (), "e", 1, 1), Issue("m", ("a",), "f")
        assert in_file_order([second, other, first, code, again, code]) == [code, first, second, other]
