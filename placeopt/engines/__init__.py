"""Engines for mixed-integer programmes that need a process of their own: HiGHS and SCIP through OR-Tools' MathOpt."""
