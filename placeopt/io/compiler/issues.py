"""Collect the issues of a spec while it is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placeopt.errors import Issue, Search, SpecError, in_file_order, listing, meaning
from placeopt.io.document import Document
from placeopt.io.spec import DeviceSpec, Spec
from placeopt.io.syntax import Path
from placeopt.model.units import shown


class Issues:
    """All issues found so far, with positions in the document, its graph file, or the file of a network."""

    def __init__(self, document: Document, graph: Document | None = None, network: Document | None = None) -> None:
        self._documents = [document] if graph is None else [document, graph]
        self._network = network
        self._found: dict[tuple[Path, str], Issue] = {}
        self._touched: set[Path] = set()
        self.modes: dict[str | int, tuple[Path, Path]] = {}
        """The places of each mode and of its task, by the name under which the mode is compiled as a task."""
        self._search = Search()

    def __len__(self) -> int:
        return len(self._found)

    @property
    def paths(self) -> list[Path]:
        """The paths of the issues."""
        return [path for path, _ in self._found]

    def add(self, message: str, path: Path, *, at_key: bool = False) -> None:
        """Add an issue at a path; duplicates are ignored."""
        path = self._stated(path)
        if (path, message) not in self._found:
            self._take(path, self._document(path).issue(message, path, at_key=at_key))

    def place(self, path: Path) -> Issue:
        """Return the position of a path, as an issue without a message; nothing is added."""
        path = self._stated(path)
        return self._document(path).issue("", path)

    def existing(self, path: Path) -> Path:
        """Return the longest part of a path that exists in its document."""
        return self._document(path).existing(path)

    def unknown(self, kind: str, name: str, known: Sequence[str], path: Path, *, at_key: bool = False) -> None:
        """Add an issue for an unknown name."""
        self.add(self.unknown_text(kind, name, known), path, at_key=at_key)

    def unknown_text(self, kind: str, name: str, known: Sequence[str]) -> str:
        """Return the message for an unknown name, with a near miss or the known names."""
        near = meaning(self._search.near_misses(kind, name, known))
        hint = near or f"; known are {listing(known)}"
        return f"unknown {kind} {shown(name)}{hint}"

    def written(self, path: Path) -> str:
        """Return the value at a path in the document, for a message."""
        path = self._stated(path)
        document = self._document(path)
        value = document.data
        for part in document.existing(path):
            value = value[part]
        return "it" if isinstance(value, dict) else shown(value)  # a Quantity, in a Spec made in code

    def keep(self, issue: Issue, under: Path = ()) -> None:
        """Add an issue that has its position; `under` is the path that names the file with the issue."""
        self._take((*under, *issue.path), issue)

    def touch(self, *path: str | int) -> bool:
        """Return whether there is an issue at a path or below."""
        return self._stated(path) in self._touched

    def error(self) -> SpecError:
        """Return a SpecError with all issues in file order."""
        return SpecError(in_file_order(self._found.values()))

    def _stated(self, path: Path) -> Path:
        """Return where a path of a mode, compiled as a task, is stated: in the mode, or for the task."""
        places = self.modes.get(path[1]) if self.modes and len(path) > 1 and path[0] == "tasks" else None
        if places is None:
            return path
        mode, task = places
        inside = len(path) < 3 or _holds(self._document(mode), (*mode, path[2]))
        return (*(mode if inside else task), *path[2:])

    def _document(self, path: Path) -> Document:
        # A network may replace some operations and leave others unchanged.
        of_network = path[:2] if path[:1] == ("operations",) else path[:1]
        if self._network is not None and path and _holds(self._network, of_network):
            return self._network
        holder = self._documents[0]
        if len(self._documents) > 1 and not _holds(holder, path[:2]) and _holds(self._documents[1], path[:2]):
            holder = self._documents[1]
        return holder

    def _take(self, path: Path, issue: Issue) -> None:
        self._found[path, issue.message] = issue
        self._touched.update(path[:length] for length in range(len(path) + 1))


class NoIssues(Issues):
    """Discards issues: those of a checked spec that is compiled again without some of its keys."""

    def _take(self, path: Path, issue: Issue) -> None:
        pass


def _holds(document: Document, path: Path) -> bool:
    data = document.data
    for part in path:
        if not isinstance(data, dict) or part not in data:
            return False
        data = data[part]
    return True


@dataclass(frozen=True, slots=True)
class Gaps:
    """Parts of a spec that may be missing because of structural issues; later checks do not report them again.

    Names of devices (or pools, types), features, tasks or operations may be missing; `scales` is whether the units of
    bare numbers or the tick are unknown, `current` whether the current placement is.
    """

    devices: bool
    features: bool
    tasks: bool
    operations: bool
    scales: bool
    current: bool

    @classmethod
    def left_by(cls, issues: Issues, *, graph_missing: bool) -> Gaps:
        """Derive the gaps from the issues of validation; without its graph file, a spec lacks tasks."""
        sections = {str(path[0]) for path in issues.paths if len(path) == 1}
        unknown = [section for section in sections if section not in Spec.model_fields]
        known, search = tuple(Spec.model_fields), Search()
        sections.update(meant for section in unknown for meant in search.near_misses("key", section, known))
        about_devices = [path for path in issues.paths if len(path) > 1 and path[0] == "devices"]
        keys = set(DeviceSpec.model_fields) - {"type", "count"}
        no_graph = graph_missing or "graph" in sections
        devices = "devices" in sections or any(len(path) < 3 or path[2] not in keys for path in about_devices)
        return cls(
            devices=devices,
            features=devices or any(path[2] == "features" for path in about_devices),
            tasks="tasks" in sections or no_graph,
            operations="operations" in sections or no_graph,
            scales=bool({"units", "resolution"} & sections) or issues.touch("units") or issues.touch("resolution"),
            current="current" in sections,
        )
