"""The command line: `placeopt solve problem.yaml`.

Data goes to stdout, progress and messages to stderr. Exit codes: 0 done; 1 negative answer (infeasible, verification
failed, required gap missed, no schedule found, different outputs); 2 wrong usage, spec or plan, a file that cannot be
written, or a process that fails; 3 time limit without a schedule; 70 a bug of placeopt or of a solver; 129, 130, 143
ended by SIGHUP, Ctrl-C, SIGTERM, with the best result saved and printed; 141 the reader of stdout has closed it, with
all files written.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # `main` shall begin before any module is imported that Python's start has not imported
if TYPE_CHECKING:
    from placeopt.errors import DocumentError

ISSUES = 100
"""Maximum number of issues of a document that are listed; `--json` lists all of them."""

OBJECTS = 100_000
"""Objects between two searches for garbage. Python's 700 cost a tenth of a command, and one command leaves little."""


def main() -> None:
    """Run the command line and end this process with its exit code."""
    import _signal  # type: ignore[import-not-found]  # `signal` imports other modules before it can be used

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # no traceback, until `run` handles signals
    gc.set_threshold(OBJECTS)
    # Tables of a million tasks on 64 devices: Linux may need a second to find huge pages for them.
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")

    from placeopt.cli.interruption import end_on_second_signal, leave

    end_on_second_signal()
    try:
        code = run()
    except Exception:  # noqa: BLE001  the interpreter would end with 1, the code of a negative result
        import traceback

        from placeopt.cli.streams import INTERNAL

        traceback.print_exc()
        print("placeopt: internal error; please report this with the problem", file=sys.stderr)
        code = INTERNAL
    leave(code)


def run() -> int:
    """Run the command line in this process and return its exit code."""
    from contextvars import copy_context

    from placeopt.cli.interruption import Interrupted, end_on_signals, raise_on_signals
    from placeopt.cli.streams import final_code, open_streams

    raise_on_signals()
    try:
        open_streams()
        code = final_code(copy_context().run(_run))  # the context holds the output files of this run
        end_on_signals()
    except Interrupted as stop:
        print(stop.message, file=sys.stderr)
        code = final_code(stop.code)
    return code


def _run() -> int:
    """Run the command line and return its exit code."""
    from placeopt.cli.streams import INTERNAL, LostError

    try:
        from placeopt.cli.app import app_for
        from placeopt.cli.options import as_json
        from placeopt.errors import InternalError, PlaceoptError, SolverError, UsageError

        as_json.set(None)  # an earlier command of this process may have set it
        try:
            if _folder_is_deleted():
                raise UsageError("the current folder has been deleted; change to another one with `cd`")
            app_for(sys.argv[1:])(prog_name="placeopt")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        except InternalError as error:
            origin = error.origin if isinstance(error, SolverError) else None
            print(f"placeopt: {'internal error: ' if origin is None else ''}{error}", file=sys.stderr)
            if error.dump is not None:
                from placeopt.cli.files import save_dump

                print(f"placeopt: {save_dump(error.dump, origin)}", file=sys.stderr)
            elif origin is not None:
                traced = "`placeopt.solve` in Python shows the traceback"
                print(f"placeopt: this is an error of {origin}, not of placeopt; {traced}", file=sys.stderr)
            return INTERNAL
        except PlaceoptError as error:
            print(_message(error), file=sys.stderr)
            return 2
    except MemoryError:
        print("placeopt: out of memory; the problem is too large for this machine or solver", file=sys.stderr)
        return 2
    except LostError:  # `final_code` reports it
        return 2
    except OSError as error:
        print(f"placeopt: {error}", file=sys.stderr)
        return 2
    return 0


def _folder_is_deleted() -> bool:
    """Whether the current folder no longer exists: relative paths, child processes and libraries would fail."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _message(error: Exception) -> str:
    from placeopt.cli.options import as_json
    from placeopt.errors import DocumentError, counted

    if not isinstance(error, DocumentError):
        return f"placeopt: {error}"
    if all(issue.line is None and not issue.path for issue in error.issues):  # files that cannot be read
        return "\n".join([*(f"placeopt: {issue}" for issue in error.issues), *_import_hints(error)])
    issues = error.issues if as_json.get() else error.issues[:ISSUES]
    hidden = len(error.issues) - len(issues)
    hint = "" if as_json.get() is None else "; --json lists all of them"
    more = f", of which {hidden:,} are not listed{hint}" if hidden else ""
    lines = [*map(str, issues), f"placeopt: {counted(len(error.issues), 'problem')} found{more}"]
    return "\n".join(lines + _import_hints(error))


def _import_hints(error: DocumentError) -> list[str]:
    """Return a line for each argument that is not a problem file but can be imported as one."""
    from placeopt.errors import SpecError, visible

    if not isinstance(error, SpecError) or "import" in sys.argv[1:2]:
        return []
    from placeopt.bridges.importers.registry import recognised

    files = [file for file in dict.fromkeys(issue.file for issue in error.issues) if file in sys.argv]
    formats = {file: recognised(file) for file in files if file is not None}
    return [
        f"placeopt: {shown} looks like {format}; `placeopt import {shown} --out problem.yaml` reads it"
        for file, format in formats.items()
        if format is not None and (shown := visible(file, 1000))
    ]
