"""Collects what is wrong with a spec while it is compiled."""

from __future__ import annotations

from placeopt.document import Document
from placeopt.errors import Issue

Path = tuple[str | int, ...]


class Issues:
    """Every issue found so far, each at its place in the document, or in the graph file for tasks that stand there."""

    def __init__(self, document: Document, graph: Document | None = None) -> None:
        self._documents = [document] if graph is None else [document, graph]
        self.found: list[Issue] = []
        self._paths: list[Path] = []

    def __len__(self) -> int:
        return len(self.found)

    def add(self, message: str, path: Path, *, at_key: bool = False) -> None:
        """Note an issue at a path."""
        document = self._documents[0]
        if len(self._documents) > 1 and not _holds(document, path[:2]) and _holds(self._documents[1], path[:2]):
            document = self._documents[1]
        self.found.append(document.issue(message, path, at_key=at_key))
        self._paths.append(path)

    def keep(self, issue: Issue) -> None:
        """Take over an issue that was found and located before."""
        self.found.append(issue)
        self._paths.append(issue.path)

    def sections(self) -> set[str]:
        """Top-level keys of the spec that have issues."""
        return {str(path[0]) for path in self._paths if path}

    def about(self, section: str) -> set[str]:
        """Names within a section (tasks, devices) that have issues."""
        return {str(path[1]) for path in self._paths if len(path) > 1 and path[0] == section}


def _holds(document: Document, path: Path) -> bool:
    data = document.data
    for part in path:
        if not isinstance(data, dict) or part not in data:
            return False
        data = data[part]
    return True
