"""Running the engines, and what their answers prove.

CP-SAT runs in a thread; HiGHS and SCIP, through OR-Tools' MathOpt, run in a separate process.
"""
