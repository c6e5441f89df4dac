"""Check output files before any work, and write them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.cli.arguments import local_file
from placeopt.cli.output import print_json
from placeopt.cli.streams import is_unicode, tolerate_lost_stdout
from placeopt.errors import UsageError, addressed, unwritable, visible
from placeopt.io.files import LONGEST_PATH, Identity, identity, keep_apart, temporary_folder, write_whole, writing

if TYPE_CHECKING:
    from placeopt.orchestration.result import Result
    from placeopt.views.plots.canvas import Picture


def check_targets(*targets: tuple[str, Path | None]) -> None:
    """Check output options and their paths: all can be written, and no two are the same file.

    Afterwards, reading one of them is an error (`placeopt.io.files.check_input`), which protects the problem, its graph
    file and plans. A lost stdout no longer ends the command, because a file will hold the result.

    Raises a UsageError if an output cannot be written, or would overwrite another one.
    """
    wanted = [(option, path) for option, path in targets if path is not None]
    found: dict[Identity, tuple[str, Path]] = {}
    for option, path in wanted:
        _check_writable(path)
        itself = identity(path)
        if itself is None:  # a pipe or a device can be shared
            continue
        if itself in found:
            raise UsageError(f"{found[itself][0]} and {option} are the same file, {_shown(path)}; expected two")
        for stream, name in ((sys.stdout, "standard output"), (sys.stderr, "standard error")):
            with contextlib.suppress(OSError, ValueError):  # not a file, in tests
                if identity(stream.fileno()) == itself:
                    raise UsageError(f"{option} {_shown(path)} is the file of {name}; expected another one")
        found[itself] = option, path
    keep_apart({itself: f"{option} {_shown(path)}" for itself, (option, path) in found.items()})
    if wanted:
        tolerate_lost_stdout()


def _check_writable(path: Path) -> None:
    """Raise a UsageError if a file cannot be written, as far as its folder shows."""
    shown = f"cannot write {_shown(path)}"
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:  # the name is too long, a link refers to itself, a part of the path is a file
        raise UsageError(unwritable(path, error)) from None
    if path.is_dir():
        raise UsageError(f"{shown}: it is a folder; expected a file")
    if path.exists() and not path.is_file():  # a device or a pipe is written, not replaced
        return
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise UsageError(f"{shown}: there is no folder {_shown(folder if path.is_symlink() else path.parent)}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{shown}: its folder is read-only")


def _shown(path: Path) -> str:
    return visible(str(path), LONGEST_PATH)


def write_document(document: dict[str, Any], out: Path | None) -> None:
    """Print a problem document as YAML, or write it to a file; a file that cannot be written is a UsageError."""
    from placeopt.io.formats.documents import document_text, to_yaml

    if out is None:
        sys.stdout.write(to_yaml(document, ascii_only=not is_unicode(sys.stdout)))
        return
    with writing(out):
        write_whole(out, document_text(document, out))


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder that gets the name `path` at the end; after an exception, nothing of it remains.

    Raises a UsageError if there is such a file or folder with content, or the folder cannot be written.
    """
    shown = f"cannot write {_shown(path)}"
    if path.is_dir() and not path.is_symlink():
        if any(path.iterdir()):
            raise UsageError(f"{shown}: the folder is not empty; expected a new one")
    elif os.path.lexists(path):
        raise UsageError(f"{shown}: it is a file; expected a new folder")
    parent = Path(os.path.realpath(path)).parent
    if not parent.is_dir():
        raise UsageError(f"{shown}: there is no folder {_shown(path.parent)}")
    with writing(path), temporary_folder(f".{path.name[:50]}-", parent) as made:
        folder = made / "new"
        folder.mkdir()
        yield folder
        os.replace(folder, path)


def written(path: Path | None, write: Callable[[Path], None]) -> bool:
    """Write a file, if there is a path, and return whether that succeeded; an error is printed on stderr."""
    if path is None:
        return True
    try:
        write(path)
    except OSError as error:
        print(f"placeopt: {unwritable(path, error)}", file=sys.stderr)
        return False
    return True


def unsaved(path: Path | None, lacking: str | None, write: Callable[[Path], None]) -> str | None:
    """Write a file, if there is a path; return why that failed, or what is `lacking` to write; else None."""
    if path is None:
        return None
    if lacking is not None:
        return f"{lacking} to write to {_shown(path)}"
    try:
        write(path)
    except (OSError, ValueError) as error:
        return unwritable(path, error)
    return None


def save_plan(path: Path | None, result: Result) -> str | None:
    """Write the plan, if there is a path; return an error message, None if it was written."""
    from placeopt.io.plan import write_plan

    lacking = "there is no schedule" if result.schedule is None else None
    return unsaved(path, lacking, lambda path: write_plan(path, result))


def certified(path: Path, result: Result, limit: float | None, should_stop: Callable[[], bool]) -> Result:
    """Write a certificate of the bound, or of infeasibility, and return the result with what a check of it proves.

    Without a bound, or if the file cannot be written, an error is printed on stderr, and nothing is checked.
    """
    from placeopt.verifier.certificates import check_certificate

    try:
        document = result.certificate(time_limit=limit, should_stop=should_stop)
    except UsageError as error:
        print(f"placeopt: {error}", file=sys.stderr)
        return result
    text = json.dumps(document, indent=1) + "\n"
    if not written(path, lambda path: write_whole(path, text)):
        return result
    return replace(result, checked=check_certificate(result.problem, json.loads(text)))


def print_instead(unsaved: str, result: Result, as_json: bool) -> None:
    """Report why the plan was not written, and print it unless the JSON output contains it."""
    where = "the JSON output contains it" if as_json else "the plan is printed instead"
    print(f"placeopt: {unsaved}{'' if result.schedule is None else f'; {where}'}", file=sys.stderr)
    if result.schedule is not None and not as_json:
        print_json(_plan(result))


def _plan(result: Result) -> dict[str, Any]:
    from placeopt.io.plan import plan_document

    assert result.schedule is not None
    return plan_document(result.problem, result.schedule, solver=result.solver, objective=result.values)


def save_exports(trace: Path | None, report: Path | None, result: Result) -> bool:
    """Write the requested files and return whether all were written; errors are printed on stderr."""
    schedule, done = result.schedule, True
    if trace is not None and schedule is None:
        print(f"placeopt: there is no schedule to write to {_shown(trace)}", file=sys.stderr)
        done = False
    elif trace is not None and schedule is not None:
        from placeopt.views.traces import write_trace

        done = written(trace, lambda path: write_trace(path, result.problem, schedule))
    if report is not None:
        from placeopt.views.page import write_report

        done = written(report, lambda path: write_report(path, result)) and done
    return done


def save_dump(dump: Mapping[str, Any], origin: str | None = None) -> str:
    """Write the dump of an internal error to the current or the temporary folder; return what the user can do.

    `origin` is the package of a solver that does not come with placeopt.
    """
    from placeopt.io.formats.documents import to_json

    run = dump["x-disagreement"]
    name = f"placeopt-disagreement-{run['fingerprint']}.json"
    for folder in (Path(), Path(tempfile.gettempdir())):
        path = folder / name
        try:
            write_whole(path, to_json(dump))
        except OSError:
            continue
        command = run["reproduce"].replace("THIS_FILE", str(path))
        return f"please report this{addressed(origin)} with the file {path}, which reproduces the error: {command}"
    return f"please report this{addressed(origin)}; {name} could not be written"


def wanted_plots(texts: Sequence[str] | None, known: Sequence[str]) -> list[tuple[str, Path]]:
    """Parse `--plot [KIND:]FILE` options; the default is the first known kind.

    An unknown kind or suffix is a UsageError, and a missing matplotlib a MissingExtraError.
    """
    from placeopt.views.plots import checked_file, checked_kind, need_plots

    wanted = []
    for text in texts or ():
        kind, colon, name = text.partition(":")
        if not colon or not re.fullmatch("[a-z]{2,}", kind):  # C:\\chart.png has no kind
            kind, name = known[0], text
        wanted.append((checked_kind(kind, tuple(known)), checked_file(local_file(name))[0]))
    if wanted:
        need_plots()
    return wanted


def save_plots(wanted: Sequence[tuple[str, Path]], draw: Callable[[str], Picture]) -> bool:
    """Draw plots to their files and return whether all succeeded; errors are printed on stderr."""
    done = True
    for kind, path in wanted:
        try:
            draw(kind).write(path)
        except UsageError as error:
            print(f"placeopt: {error}", file=sys.stderr)
            done = False
    return done
