"""One linear model of pipelines for the exact solvers: CP-SAT enforces its conditional rows, MILP uses big M."""
