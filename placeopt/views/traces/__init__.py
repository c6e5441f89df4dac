"""Schedules as traces: files that ui.perfetto.dev and chrome://tracing open.

The JSON object format of the Trace Event Format (Google,
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), with

    metadata events (M)   names and order of processes and threads
    complete events (X)   tasks, one thread a device; under port contention also transfers, on a thread for each
                          device's sending port and one for its receiving port
    flow events (s, f)    data that moves: from a producer to its consumers elsewhere; under port contention from the
                          producer to the sending port, on to the receiving port, and to every consumer served
    counter events (C)    bytes live on each device, in a process of their own

What viewers ask beyond the document, and where they say so: slices of one thread never overlap (google/perfetto
issues 928 and 4280), so tasks that do, in a schedule that the verifier rejects, are put on further threads; process 0
means the kernel (issue 394), so processes count from 1; a flow binds to the slice that was opened last on its thread
at its time (flow_tracker.cc there), so flow events follow their slice at once, with its own time stamp, and the file
is sorted. Arrows are drawn from the end of one slice to the start of the next all the same. Texts stand as they are, in
UTF-8. Perfetto 55, asked with SQL, has the slices, times, flows and counters of the schedule, but for one thing: of
slices of one thread that start together it opens the longest first, so arrows of a task may be drawn from one of no
length that starts together with it.

The format counts microseconds and viewers keep nanoseconds: a tick of whole nanoseconds is written exactly. Of a finer
one, starts and ends are rounded down, so that what does not overlap does not in the trace either. The exact ticks stand
in each slice's arguments.
"""

from __future__ import annotations

from placeopt.views.traces.events import trace_text, write_trace

__all__ = ["trace_text", "write_trace"]
