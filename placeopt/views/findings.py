"""Findings of studies as text, as HTML for notebooks, and as data frames, from the same tables and remarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placeopt.model.notebook import framed, note
from placeopt.views.facts import Grid, problem_line

if TYPE_CHECKING:
    import pandas as pd

    from placeopt.model.problem import Problem


class Tabular:
    """What has rows, and is thus a data frame."""

    __slots__ = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as plain data, each with the same keys."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """Return the `rows` as a pandas data frame; absent values are `pandas.NA`, and integers stay integers.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        from placeopt.views.frames import runs_frame

        return runs_frame(self.rows())


class Findings(Tabular):
    """What a study found of a problem: tables, remarks and a conclusion."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def problem(self) -> Problem: ...
        @property
        def conclusion(self) -> str: ...

    def grids(self) -> list[Grid]:
        """Return the tables."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """Return notes to the tables."""
        return []

    def __str__(self) -> str:
        lines = [line for grid in self.grids() for line in (*filter(None, [grid.title]), *grid.lines(), *grid.notes)]
        remarks = (f"note: {text}" for text in self.remarks())
        return "\n".join([problem_line(self.problem), *lines, *remarks, self.conclusion])

    def _repr_html_(self) -> str:
        parts = [part for grid in self.grids() for part in (grid.html(), *map(note, grid.notes))]
        return framed(problem_line(self.problem), *parts, *map(note, (*self.remarks(), self.conclusion)))
