"""Read measurements of operators from files of any known kind: CSV, or a trace of a profiler."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.bridges.profiling.measurements import Measurements, combined
from placeopt.bridges.profiling.tables import LARGEST_BATCH, table_of
from placeopt.bridges.profiling.traces import is_trace, trace_of
from placeopt.errors import DocumentError, Issue, UsageError, counted, in_file_order
from placeopt.io.document import reading
from placeopt.io.files import StrPath, read_file


def read_measurements(
    *paths: StrPath, batch: int | Sequence[int] | None = None, device: str | None = None
) -> Measurements:
    """Read the measurements in one or several files, whose kind is recognised by content.

    The kinds are CSV files, profiles of ONNX Runtime, and traces of torch.profiler.

    Parameters
    ----------
    batch
        Batch size of the traces, which they do not state: one for all, or a list with one for each trace in order.
    device
        The device of a problem on which the traces were measured; by default, their times apply to every device. CSV
        files state devices and batch sizes in columns.

    Raises
    ------
    DocumentError
        If a file cannot be read or is not valid; lists every issue with its position.
    UsageError
        If `batch` does not fit the traces, or only some of the files state memory.
    """
    contents = []
    for path in paths:
        with reading(path):
            contents.append(read_file(path))
    traces = [place for place, content in enumerate(contents) if is_trace(content)]
    size = dict(zip(traces, _sizes(batch, len(traces)), strict=True))
    parts: list[Measurements] = []
    issues: list[Issue] = []
    for place, (path, content) in enumerate(zip(paths, contents, strict=True)):
        try:
            if place in size:
                parts.append(trace_of(content, str(path), size[place], device))
            else:
                parts.append(table_of(content, str(path)))
        except DocumentError as error:
            issues += error.issues
    if issues:
        raise DocumentError(in_file_order(issues))
    return combined(parts)


def _sizes(batch: int | Sequence[int] | None, traces: int) -> list[int]:
    """Return the batch size of each trace."""
    given = [] if batch is None else [batch] * traces if isinstance(batch, int) else list(batch)
    if len(given) == 1:
        given *= max(traces, 1)
    if len(given) != traces:
        raise UsageError(
            f"batch: {counted(len(given), 'batch size')} for {counted(traces, 'trace')}; expected one for each trace, "
            "which does not state it, and none for CSV files, which do"
        )
    for size in given:
        if not 1 <= size <= LARGEST_BATCH:
            raise UsageError(f"batch: {size} is not a batch size; expected a whole number from 1 to {LARGEST_BATCH:,}")
    return given
