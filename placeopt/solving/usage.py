"""Main memory that a solve needs."""

from __future__ import annotations

import sys


def peak_resident() -> int | None:
    """Bytes of main memory that this process, or one that it started and that has ended, held at most so far.

    None if the system does not report it.
    """
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return getattr(psutil.Process().memory_info(), "peak_wset", None)
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return most if sys.platform == "darwin" else 1024 * most
