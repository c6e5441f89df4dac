"""Schedules to start from: heuristics, segments of topological orders, single devices."""
