"""Schedules to start from: heuristics, segments of topological orders, one device after the other."""
