"""Run the engines, and derive proved bounds from their answers.

CP-SAT and GLOP run in a thread; HiGHS and SCIP, through OR-Tools' MathOpt, run in a separate process.
"""


class BuildStoppedError(Exception):
    """The time limit or the caller stopped the building of a model."""


class EngineError(Exception):
    """An engine or its process failed; the message says how."""
