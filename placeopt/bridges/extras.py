"""Optional libraries of the bridges, imported on first use."""

from __future__ import annotations

from importlib import import_module

from placeopt.errors import MissingExtraError


def require(module: str, extra: str, what: str) -> None:
    """Import a library of an extra, so that a plain `import` of it succeeds afterwards.

    `what` begins the message: "ONNX models".

    Raises a MissingExtraError if the library is not installed; it names the command that installs it.
    """
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtraError(f"{what} need {module}: pip install 'placeopt[{extra}]'") from None
