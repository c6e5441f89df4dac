"""The MILP model: variables, constraints, objective, and how it is run."""
