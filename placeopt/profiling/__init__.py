"""From measurements of small batch sizes to durations, memory and links of a spec: Celeritas's Standard Evaluation.

Xu et al.: Celeritas: Fast Optimizer for Large Dataflow Graphs, 2022, section 4.2.1. `fit_profile` estimates what each
operator needs at a larger batch size, `fit_transfers` what moving data costs, `profile_document` puts both in the words
of a spec, and `apply_profile` writes them into one.
"""

from placeopt.profiling.estimates import Deviations, Estimate, Line, Measured, Profile, fit_profile
from placeopt.profiling.fragments import Applied, apply_profile, profile_document, read_profile
from placeopt.profiling.measurements import Measurements, TransferTimes, read_measurements, read_transfers
from placeopt.profiling.transfers import TransferModel, fit_transfers

__all__ = [
    "Applied",
    "Deviations",
    "Estimate",
    "Line",
    "Measured",
    "Measurements",
    "Profile",
    "TransferModel",
    "TransferTimes",
    "apply_profile",
    "fit_profile",
    "fit_transfers",
    "profile_document",
    "read_measurements",
    "read_profile",
    "read_transfers",
]
