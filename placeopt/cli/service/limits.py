"""What clients of the service may ask for."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a service."""

    body: int = 10**6
    """Bytes of a request body."""
    tasks: int = 5_000
    """Tasks of a problem."""
    devices: int = 500
    """Devices of a problem, with those that its teams and modes make."""
    seconds: float = 60.0
    """Seconds of a solve."""
    memory: int = 2**31
    """Bytes of main memory that the process of a job may hold."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Jobs that run at the same time, each on one core."""
    queue: int = 250
    """Jobs that wait."""
    kept: int = 200
    """Jobs that have ended and whose results can still be read; the oldest are dropped first."""
    room: int = 2**29
    """Bytes that the problems of all jobs may take in the memory of the service, those of ended jobs included."""
    connections: int = 500
    """Connections that are open at the same time."""
