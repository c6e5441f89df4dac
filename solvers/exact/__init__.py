"""Exact solvers and relaxations."""
