"""The command line: `placeopt solve problem.yaml`.

Data goes to stdout, progress and messages to stderr. Exit codes: 0 done; 1 the answer is no (infeasible, verification
failed, a required gap missed, no schedule found); 2 wrong usage, spec or plan, or a file that cannot be written; 3 time
limit without a schedule; 70 placeopt contradicts itself, a bug; 130 interrupted.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit the process with its code."""
    if sys.stderr is None:  # closed by the caller: messages have nowhere to go
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  for the rest of the process
    if sys.stdout is None:
        print("placeopt: standard output is closed; results need a place to go", file=sys.stderr)
        sys.exit(2)
    try:
        from placeopt.cli.app import app
        from placeopt.errors import InternalError, PlaceoptError

        try:
            app(prog_name="placeopt")
        except InternalError as error:
            print(f"placeopt: internal error: {error}", file=sys.stderr)
            if error.dump is not None:
                from placeopt.cli.dumps import save_dump

                print(f"placeopt: {save_dump(error.dump)}", file=sys.stderr)
            sys.exit(70)
        except PlaceoptError as error:
            print(_message(error), file=sys.stderr)
            sys.exit(2)
    except KeyboardInterrupt:
        print("placeopt: interrupted", file=sys.stderr)
        sys.exit(130)
    except MemoryError:
        print("placeopt: out of memory; the problem is too large for this machine or solver", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output went away (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:  # stdout itself: a full disk behind a redirection
        print(f"placeopt: cannot write the output: {error.strerror or error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)


def _message(error: Exception) -> str:
    from placeopt.errors import DocumentError

    if isinstance(error, DocumentError):
        count = len(error.issues)
        return f"{error}\nplaceopt: {count} problem{'s' if count != 1 else ''} found"
    return f"placeopt: {error}"
