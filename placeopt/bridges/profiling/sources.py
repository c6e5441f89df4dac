"""Read measurements of operators from files of any known kind: CSV, or a trace of a profiler."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.bridges.profiling.measurements import Measurements, combined
from placeopt.bridges.profiling.tables import table_of
from placeopt.bridges.profiling.traces import is_trace, trace_of
from placeopt.errors import DocumentError, Issue, UsageError, counted, in_file_order
from placeopt.io.files import StrPath, UnreadableError, read_file


def read_measurements(
    *paths: StrPath, batch: int | Sequence[int] | None = None, device: str | None = None
) -> Measurements:
    """Read the measurements in one or several files, whose kind is recognised by content.

    The kinds are CSV files, profiles of ONNX Runtime, and traces of torch.profiler.

    Parameters
    ----------
    batch
        Batch size of the traces, which they do not state: one for all, or one for each trace in order.
    device
        The device of a problem on which the traces were measured; by default, their times apply to every device.

    Raises
    ------
    DocumentError
        If a file cannot be read or is not valid; lists every issue with its position.
    UsageError
        If `batch` does not fit the traces, if no file is a trace and `batch` or `device` is given, or if only some of
        the files state memory.
    """
    contents = [_content(path) for path in paths]
    traces = [place for place, content in enumerate(contents) if is_trace(content)]
    sizes = _sizes(batch, len(traces))
    if device is not None and not traces:
        raise UsageError(f"device: {device} is given, but no file is a trace; a CSV file states devices in a column")
    size = dict(zip(traces, sizes, strict=True))
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
    given = [] if batch is None else [batch] if isinstance(batch, int) else list(batch)
    if not traces:
        if given:
            raise UsageError("batch: no file is a trace; a CSV file states its batch sizes in a column")
        return []
    if len(given) not in (1, traces):
        raise UsageError(
            f"batch: {counted(len(given), 'batch size')} for {counted(traces, 'trace')}; expected one for all, or one "
            "for each, since a trace does not state its batch size"
        )
    for size in given:
        if size < 1:
            raise UsageError(f"batch: {size} is not a batch size; expected a whole number of at least 1")
    return given * traces if len(given) == 1 else given


def _content(path: StrPath) -> bytes:
    try:
        return read_file(path)
    except UnreadableError as error:
        raise DocumentError([Issue(str(error), (), str(path))]) from None
