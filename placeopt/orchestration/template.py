"""Imported last by the template of forked processes: a small solve fills its caches, and no collection copies them."""

from __future__ import annotations

import gc

from placeopt.model.building import build_problem
from placeopt.orchestration.pipeline import solve

solve(build_problem(task_names=["task"], device_names=["device"], duration=[[1]]), "heft", workers=1)
gc.collect()
gc.freeze()  # a collection in a forked process would touch all pages of older objects, which copies them
