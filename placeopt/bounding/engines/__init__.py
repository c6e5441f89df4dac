"""Run the engines, and derive proved bounds from their answers.

CP-SAT and GLOP run in a thread; HiGHS and SCIP, through OR-Tools' MathOpt, run in a separate process.
"""


class EngineError(Exception):
    """An engine or its process failed; the message says how."""
