"""Estimate durations, memory and links from measurements of small batch sizes: Celeritas's Standard Evaluation.

Xu et al.: Celeritas: Fast Optimizer for Large Dataflow Graphs, 2022, section 4.2.1. `fit_profile` estimates the time
and memory of each operator at a larger batch size, `fit_transfers` fits links, `profile_document` writes both as a
profile, and `apply_profile` merges a profile into a problem.
"""

from placeopt.bridges.profiling.efficiency import DeviceEfficiency, Reached, device_efficiency
from placeopt.bridges.profiling.estimates import (
    Deviations,
    Estimate,
    Line,
    Measured,
    Profile,
    TransferModel,
    fit_profile,
    fit_transfers,
)
from placeopt.bridges.profiling.fragments import Applied, apply_profile, profile_document, read_profile
from placeopt.bridges.profiling.measurements import Measurements, Runs, TransferTimes
from placeopt.bridges.profiling.programs import profile_torch
from placeopt.bridges.profiling.sources import read_measurements
from placeopt.bridges.profiling.tables import read_transfers
from placeopt.bridges.profiling.traces import read_kineto_trace, read_onnxruntime_profile

__all__ = [
    "Applied",
    "Deviations",
    "DeviceEfficiency",
    "Estimate",
    "Line",
    "Measured",
    "Measurements",
    "Profile",
    "Reached",
    "Runs",
    "TransferModel",
    "TransferTimes",
    "apply_profile",
    "device_efficiency",
    "fit_profile",
    "fit_transfers",
    "profile_document",
    "profile_torch",
    "read_kineto_trace",
    "read_measurements",
    "read_onnxruntime_profile",
    "read_profile",
    "read_transfers",
]
