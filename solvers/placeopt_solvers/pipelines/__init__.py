"""Solvers for the period of pipelines."""
