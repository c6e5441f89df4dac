"""Define the result of a comparison: runs as text, data frames and plots."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from placeopt.errors import counted
from placeopt.studies.comparison.drawing import draw_comparison
from placeopt.studies.comparison.grids import as_html, as_text
from placeopt.studies.comparison.tables import Runs

if TYPE_CHECKING:
    import pandas as pd

    from placeopt.views.plots.canvas import Picture


class Comparison(Runs):
    """The runs of a comparison and their tables; `print` shows the output of `placeopt compare`."""

    def to_frame(self) -> pd.DataFrame:
        """Return the `rows` as a pandas data frame; absent values are `pandas.NA`, and integers stay integers.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        from placeopt.views.frames import runs_frame

        return runs_frame(self.rows())

    def plot(self, kind: str = "profile", path: str | os.PathLike[str] | None = None, *, title: str = "") -> Picture:
        """Draw "profile", "gap" (against run time) or "convergence" as a matplotlib Figure that notebooks show.

        With a path, also write it as PNG, SVG or PDF by the suffix.

        Raises
        ------
        UsageError
            If the kind or the format is unknown, or the file cannot be written.
        MissingExtraError
            If matplotlib is not installed.
        """
        from placeopt.views.plots import checked_file

        if path is not None:
            checked_file(path)
        picture = draw_comparison(self, kind, title=title)
        if path is not None:
            picture.write(path)
        return picture

    def __repr__(self) -> str:
        missing = self.expected > len(self.records)
        runs = f"{len(self.records):,} of " * missing + counted(self.expected if missing else len(self.records), "run")
        solvers, problems = counted(len(self.solvers), "solver"), counted(len(self.by_problem), "problem")
        return f"<Comparison: {runs} of {solvers} on {problems}>"

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)
