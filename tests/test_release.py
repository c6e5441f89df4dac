"""What a release states: one version everywhere, and files that other tools read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: str | Path) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_one_version() -> None:
    version = PROJECT["version"]
    assert read("CITATION.cff")["version"] == version
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+) \(.*\)$", changes, re.MULTILINE).group(1) == version  # type: ignore[union-attr]
    assert f"placeopt:{version}" in (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    minor = version.rpartition(".")[0]
    assert f"minor version, {minor}." in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_summary_takes_a_minute() -> None:
    """250 words are read in a minute."""
    summary = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert len(re.sub(r"\]\([^)]*\)", "]", summary).split()) <= 300


def test_supported_pythons_are_stated_once() -> None:
    stated = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert PROJECT["requires-python"] == f">={stated[0]}"
    jobs = read(".github/workflows/ci.yml")["jobs"]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == stated
    assert jobs["others"]["strategy"]["matrix"]["python"] == stated
    page = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    assert f"Python {', '.join(stated[:-1])} and {stated[-1]}." in page


def test_nothing_is_published_without_a_person() -> None:
    """Only `release` publishes; it is started by hand, and its job waits for a reviewer of its environment."""
    publishing = [path.name for path in WORKFLOWS if "pypi-publish" in path.read_text(encoding="utf-8")]
    assert publishing == ["release.yml"]
    release = read(".github/workflows/release.yml")
    assert set(release[True]) == {"workflow_dispatch"}  # YAML 1.1 reads the key `on` as true
    assert release["jobs"]["publish"]["environment"] == "release"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_few_rights(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "runs-on" in job or job["uses"].startswith("./")
        for step in job.get("steps", ()):
            assert ("run" in step) != ("uses" in step), step


def test_issue_forms() -> None:
    forms = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
    assert len(forms) == 2
    for path in forms:
        form = read(path)
        assert {"name", "description", "body"} <= set(form)
        fields = [part for part in form["body"] if part["type"] != "markdown"]
        assert len({part["id"] for part in fields}) == len(fields)
        assert all(part["attributes"]["label"] for part in fields)
