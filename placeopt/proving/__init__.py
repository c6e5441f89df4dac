"""All lower bounds of a problem, those from other solvers included, and a thread that proves them during a search."""
