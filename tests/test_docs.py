"""The documentation: examples, listings, links, tables of the registry, and the build of the site."""

from __future__ import annotations

import contextlib
import html
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandline import run
from documents import Example, examples

from placeopt.errors import MissingExtraError
from placeopt.io.spec import json_schema
from placeopt.protocol.registry import find_solver, solver_names
from placeopt.verifier import Rule

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_PAPERS = ROOT / "benchmarks" / "papers"
PAPERS = [_PAPERS / "README.md", *sorted((_PAPERS / "pages").glob("*.md"))]
sys.path.insert(0, str(ROOT / "docs" / "_pages"))

from links import is_relative, replaced, site_links, targets  # noqa: E402
from schema_page import TITLES, schema_page  # noqa: E402
from solver_pages import WHEN, families, our_solvers, solver_page, source_path, table  # noqa: E402

LIMIT = "0.2"
"""Time limit of a solver in seconds, regardless of the example."""


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


class TestExamples:
    @pytest.mark.parametrize("path", PAGES, ids=page_id)
    def test_examples_run(self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "problems").symlink_to(ROOT / "problems")
        monkeypatch.chdir(tmp_path)
        found = examples(path)
        for example in found:
            if example.file is not None:
                (tmp_path / example.file).write_text(example.text, encoding="utf-8")
        names: dict[str, Any] = {"__name__": "example"}
        for example in found:
            if example.reason is None and example.kind == "python":
                self.execute(path, example, names)
            elif example.reason is None and example.kind == "command":
                self.command(path, example)

    def execute(self, path: Path, example: Example, names: dict[str, Any]) -> None:
        code = re.sub(r"time_limit=\d+", f"time_limit={LIMIT}", example.text)
        # A failure has the line numbers of the page.
        compiled = compile("\n" * example.line + code, str(path), "exec")
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compiled, names)
        except MissingExtraError as error:
            pytest.skip(str(error))
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            pytest.skip("PyTorch is not installed: pip install 'placeopt[torch]'")

    def command(self, path: Path, example: Example) -> None:
        arguments = example.arguments[1:]
        for k, word in enumerate(arguments):
            if word in ("--time-limit", "-t", "--bound-time"):
                arguments[k + 1] = f"{LIMIT}s"
            elif word == "--episodes":
                arguments[k + 1] = str(int(arguments[k + 1]) // 10)
        limited = {"--time-limit", "-t"} & set(arguments)
        # Defaults are long. What is said to end without a schedule ends by itself, which a limit must not prevent.
        if arguments[0] in ("solve", "whatif", "losses", "pareto") and not limited and example.exit_code == 0:
            arguments += ["--time-limit", f"{LIMIT}s"]
        if arguments[0] == "run":
            # Two threads: with one, the unsplit model runs again with the threads of all devices, a process more.
            arguments += ["--runs", "1", "--warmup", "0", "--threads", "2"]
        done = run(*arguments)
        if missing := re.search(r".*pip install 'placeopt\[\w+\]'", done.err):
            pytest.skip(missing[0])
        assert done.code == example.exit_code, f"{page_id(path)}:{example.line}: {example.text}\n{done.err}"

    def test_readme_starts_with_a_command_that_solves_and_one_that_tests(self) -> None:
        """CI takes its test command from there."""
        start = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Start\n")[1].split("\n## ")[0]
        commands = re.findall(r"^    (pip install .*)$", start, re.MULTILINE)
        assert [command.split(" && ")[1].split()[0] for command in commands] == ["placeopt", "pytest"]
        pattern = re.search(r"sed -n '(.*?)' README.md", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
        assert pattern is not None
        if shutil.which("sed") is None:
            pytest.skip("sed is not installed")
        done = subprocess.run(["sed", "-n", pattern[1], ROOT / "README.md"], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [commands[1]]

    @pytest.mark.parametrize("path", PAGES, ids=page_id)
    def test_reasons_for_not_running_are_known(self, path: Path) -> None:
        for example in examples(path):
            assert example.reason is None or len(example.reason.split()) > 3

    def test_listings_equal_their_files(self) -> None:
        shown = [example for path in PAGES for example in examples(path) if example.source is not None]
        assert len(shown) >= 3
        for example in shown:
            assert example.text == (ROOT / str(example.source)).read_text(encoding="utf-8"), example.source

    def test_examples_are_extracted(self, tmp_path: Path) -> None:
        page = tmp_path / "page.md"
        page.write_text(
            "Save it as `a.yaml`:\n\n```yaml\nx: 1\n```\n\n"
            "    placeopt solve a.yaml \\\n        --seed 1  # exits with 3\n"
            "    placeopt solve PROBLEM\n    other\n    python -c 'x = 1'\n\n"
            "<!-- not run: it takes all day long -->\n\n```python\nwhile True: pass\n```\n\n```python\npass\n```\n"
            "`b.csv`, a file\n\n```csv\n1\n```\nand c\n\n```yaml\ny: 1\n```\n"
        )
        found = examples(page)
        assert [(e.kind, e.reason, e.file, e.exit_code) for e in found] == [
            ("yaml", None, "a.yaml", 0),
            ("command", None, None, 3),
            ("command", "a word in capitals stands for something", None, 0),
            ("python", None, None, 0),
            ("python", "it takes all day long", None, 0),
            ("python", None, None, 0),
            ("csv", None, "b.csv", 0),
            ("yaml", None, None, 0),
        ]
        assert found[1].arguments == ["placeopt", "solve", "a.yaml", "--seed", "1"]


def anchors(path: Path) -> set[str]:
    """The anchors of a page, as GitHub names them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


class TestLinks:
    @pytest.mark.parametrize("path", [*PAGES, *PAPERS], ids=page_id)
    def test_links_are_valid_in_the_repository(self, path: Path) -> None:
        for target in targets(path.read_text(encoding="utf-8")):
            if is_relative(target):
                file, _, anchor = target.partition("#")
                found = (path.parent / file).resolve() if file else path
                assert found.exists(), f"{target} leads nowhere"
                assert not anchor or anchor in anchors(found), f"{target}: no such title"

    def test_links_are_rewritten_for_the_site(self) -> None:
        solvers = {"solvers/ready_lists/m_sct.py": "m-sct"}

        def changed(text: str, source: str, page: str) -> tuple[str, list[str]]:
            return site_links(text, source, page, solvers, ROOT)

        assert changed("[a](docs/spec.md#units)", "README.md", "index.md") == ("[a](spec.md#units)", [])
        assert changed("[a](../README.md#start)", "docs/spec.md", "spec.md") == ("[a](index.md#start)", [])
        assert changed("[`a`](../solvers/ready_lists/m_sct.py)", "docs/x.md", "x.md") == ("[`a`](solvers/m-sct.md)", [])
        assert changed("[a](../docs/x.md)", "solvers/m-sct.md", "solvers/m-sct.md") == ("[a](../x.md)", [])
        assert changed("[a](../benchmarks/gaps.py)", "docs/x.md", "x.md") == ("[a](benchmarks.md#gapspy)", [])
        assert changed("[a](../benchmarks/papers/README.md)", "docs/x.md", "x.md") == ("[a](papers/index.md)", [])
        assert changed("[a](../../../docs/x.md)", "benchmarks/papers/pages/giph.md", "papers/giph.md") == (
            "[a](../x.md)", [],
        )  # fmt: skip
        assert changed("![a](../problems/vgg19.yaml)", "docs/x.md", "x.md") == (
            "![a](files/problems/vgg19.yaml)", ["problems/vgg19.yaml"],
        )  # fmt: skip
        for kept in (
            "[a](https://example.org/b)",
            "[a](#b)",
            "`[a](docs/b.md)`",
            "    [a](docs/b.md)",
            "[a](no/such.file)",
        ):
            assert changed(kept, "README.md", "index.md")[0] == kept

    def test_links_in_code_are_not_rewritten(self) -> None:
        text = "[`a[0]`](b) [c [d]](e)\n```\n[f](g)\n```\n[h](i)"
        assert targets(text) == ["b", "e", "i"]
        assert replaced(text, str.upper) == text.replace("(b)", "(B)").replace("(e)", "(E)").replace("(i)", "(I)")


class TestSolvers:
    def test_each_solver_has_a_recommendation(self) -> None:
        assert sorted(WHEN) == our_solvers()
        assert set(our_solvers()) <= set(solver_names())
        assert sorted(name for names in families().values() for name in names) == our_solvers()

    def test_solver_table_equals_the_registry(self) -> None:
        rows = [line.split(" | ") for line in table("").split("\n") if line.startswith("| [`")]
        assert len(rows) == len(our_solvers())
        for first, guarantee, complexity, _ in rows:
            name = re.findall(r"`(.*?)`", first)[0]
            info = find_solver(name).info
            assert complexity.replace("&lt;", "<") == info.complexity
            assert info.guarantee.startswith(html.unescape(guarantee).removesuffix(", ..."))
            assert (ROOT / re.findall(r"\((.*?)\)", first)[0]).is_file()

    def test_readme_lists_every_solver(self) -> None:
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        section = readme.split("## The solvers")[1].split("\n## ")[0]
        assert set(re.findall(r"`([a-z][a-z-]*)`", section)) >= set(our_solvers())

    def test_generated_tables_are_current(self) -> None:
        for path in PAGES:
            kept = re.search(r"<!-- table of solvers.*?-->\n\n(.*?)\n\n", path.read_text(encoding="utf-8"), re.DOTALL)
            if kept:
                prefix = "" if path.parent == ROOT else "../"
                assert kept[1] == table(prefix), f"{page_id(path)}: run python docs/_pages/solver_pages.py"

    @pytest.mark.parametrize("name", ["heft", "m-sct", "cp-sat", "single"])
    def test_solver_page_contains_the_registry_entry(self, name: str) -> None:
        page = solver_page(name)
        info = find_solver(name).info
        assert page.startswith(f"# {name}\n")
        assert f"\n\n| | {name} |\n|---|---|\n| guarantee | " in page  # the first row is not a header
        for text in (info.guarantee, info.complexity, info.citation):
            assert text.replace("<", "&lt;").replace("|", "\\|") in page or text in page
        for key, field in find_solver(name).settings_type.model_fields.items():
            assert f"| `{key}` |" in page
            assert " ".join((field.description or "").split()).replace("<", "&lt;") in page
        docstring = sys.modules[type(find_solver(name)).__module__].__doc__
        assert docstring is not None
        assert docstring.strip().split("\n")[-1].strip().replace("<", "&lt;") in page
        assert (ROOT / source_path(name)).is_file()


class TestReference:
    def test_reference_contains_every_key(self) -> None:
        schema = json_schema()
        page = schema_page(schema)
        assert set(TITLES) == set(schema["$defs"])
        parts = dict(part.split("\n", 1) for part in page.split("\n## ")[1:])
        for title, definition in [("the document", schema)] + [(TITLES[n], d) for n, d in schema["$defs"].items()]:
            for key, value in definition["properties"].items():
                (row,) = (line for line in parts[title].split("\n") if line.startswith(f"| `{key}` |"))
                assert " ".join(value.get("description", "").split()) in row
                assert ("required" in row.split("|")[3]) == (key in definition.get("required", []))
                assert "anything" not in row

    def test_spec_explains_every_key(self) -> None:
        text = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
        schema = json_schema()
        for definition in (schema, schema["$defs"]["TaskSpec"], schema["$defs"]["MemorySpec"]):
            for key in definition["properties"]:
                assert f"`{key}`" in text or f"{key}:" in text, key


def test_verification_page_lists_every_rule() -> None:
    text = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8").split("## The rules")[1].split("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", text)) == {rule.value for rule in Rule}


def test_site_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'placeopt[docs]'")
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'placeopt[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    pages = {str(path.relative_to(tmp_path / "site")) for path in (tmp_path / "site").rglob("index.html")}
    assert pages >= {"index.html", "tutorial/index.html", "reference/index.html", "benchmarks/index.html"}
    assert pages >= {"papers/index.html", "papers/giph/index.html"}
    assert pages >= {f"solvers/{name}/index.html" for name in our_solvers()}
    text = (tmp_path / "site" / "solvers" / "m-sct" / "index.html").read_text(encoding="utf-8")
    assert "favourite child" in text
    for page in pages:  # nothing is loaded from other hosts
        text = (tmp_path / "site" / page).read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]*)|<link[^>]* href="([^"]*)', text)
        assert not [address for pair in loaded for address in pair if address.startswith(("http", "//"))], page
