"""Studies that need several solves: comparison of solvers, explanation of infeasibility, replacement after a change."""
