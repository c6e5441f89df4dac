"""Solvers of placeopt, by family; installed as `placeopt_solvers`."""
