"""The CP-SAT model: variables, constraints, objective, and how it is run."""
