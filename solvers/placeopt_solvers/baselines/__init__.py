"""Baselines: simple and random placements to compare with."""
