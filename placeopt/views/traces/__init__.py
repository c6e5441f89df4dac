"""Write schedules as traces for ui.perfetto.dev and chrome://tracing.

The files use the JSON object format of the Trace Event Format (Google,
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), with

    metadata events (M)   names and order of processes and threads
    complete events (X)   tasks, one thread per device; under port contention also transfers, on one thread for the
                          sending and one for the receiving port of each device
    flow events (s, f)    transfers: from a producer to its consumers on other devices; under port contention from the
                          producer to the sending port, then to the receiving port, then to every consumer served
    counter events (C)    live bytes on each device, in a separate process

Viewers have further requirements. Slices of one thread never overlap (google/perfetto issues 928 and 4280), so tasks
that overlap in an infeasible schedule are put on additional threads. Process 0 means the kernel (issue 394), so
processes count from 1. A flow binds to the slice that was opened last on its thread at its time (flow_tracker.cc), so
flow events follow their slice with the same time stamp, and the file is sorted by time. Arrows are still drawn from
the end of one slice to the start of the next. Text is unescaped UTF-8. SQL queries in Perfetto 55 return the slices,
times, flows and counters of the schedule, with one exception: of slices of one thread that start together, Perfetto
opens the longest first, so arrows of a task may start at a slice of zero length.

The format counts microseconds and viewers keep nanoseconds. Ticks of whole nanoseconds are written exactly. For finer
ticks, starts and ends are rounded down, so that slices do not overlap; the arguments of each slice hold exact ticks.
"""

from __future__ import annotations

from placeopt.views.traces.events import trace_text, write_trace

__all__ = ["trace_text", "write_trace"]
