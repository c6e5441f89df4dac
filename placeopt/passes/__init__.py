"""Passes: rewrites of a problem into a smaller or easier one, with the way back for schedules.

An *exact* pass keeps the optimum: the reduced problem has a feasible schedule if and only if the original has one,
the best value of the whole (also lexicographic) objective is the same, and a schedule restored from the reduced
problem has the objective that it has there. The proof of each stands in the docstring of its module:

    forced-devices    devices that no schedule can use; groups with one device in common become one group
    idle-devices      more devices of a class than there are groups for them
    relays            zero-time tasks on their own join a neighbour's group
    zero-time         tasks that take no time and have a neighbour to stand in for them
    dominated-edges   edges that follow from others
    contract-groups   colocation groups, where only the placement counts

The others trade the optimum for a problem that is easier to place:

    forward           backward tasks follow their forward tasks
    coplace           tasks that have only each other to talk to share a device
    fuse              connected tasks of one group become one
    celeritas-fusion  neighbours in a topological order become one, at optimal breakpoints

What is valid in the reduced problem is so in the original, deadlines excepted, as long as memory is counted by `sum`.
"""

from placeopt.passes.catalog import EXACT_PASSES, PASSES, find_pass, pass_names, pass_settings, pass_text
from placeopt.passes.chain import Applied, Chain, Size, Step, apply_passes
from placeopt.passes.protocol import Pass, Reduction

__all__ = [
    "EXACT_PASSES",
    "PASSES",
    "Applied",
    "Chain",
    "Pass",
    "Reduction",
    "Size",
    "Step",
    "apply_passes",
    "find_pass",
    "pass_names",
    "pass_settings",
    "pass_text",
]
