"""The portfolio `auto`: several solvers share one time limit and one incumbent."""
