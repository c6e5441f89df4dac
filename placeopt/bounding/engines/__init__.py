"""Running the engines, and what their answers prove.

CP-SAT and GLOP run in a thread; HiGHS and SCIP, through OR-Tools' MathOpt, run in a separate process.
"""


class BuildStoppedError(Exception):
    """The time limit or the caller stopped the building of a model."""


class EngineError(Exception):
    """An engine or its process failed; the message says how."""
