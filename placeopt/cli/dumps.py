"""Save files that reproduce internal errors."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def save_dump(dump: Mapping[str, Any]) -> str:
    """Write the dump to the current folder or the temporary folder; return where it is and what to do."""
    from placeopt.io.files import write_whole
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
        return f"please report this with the file {path}, which reproduces the error: {command}"
    return f"please report this; {name} could not be written"
