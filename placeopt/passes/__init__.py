"""Passes: rewrites of a problem into a smaller or easier one, with a mapping back for schedules.

An *exact* pass keeps the optimum. The reduced problem has a feasible schedule if and only if the original has one, both
have the same best objective value on every level, and a restored schedule keeps its objective value. The docstring of
each class or module gives the proof:

    forced-devices    forbids devices that no feasible schedule uses; unites groups with the same single device
    idle-devices      drops devices of a class that has more devices than groups that may run there
    relays            moves zero-time tasks that are alone in their group into the group of a neighbour
    zero-time         removes zero-time tasks that a neighbour in their group can represent
    dominated-edges   removes edges that other edges imply
    contract-groups   contracts colocation groups where only the placement matters

The other passes trade the optimum for a problem that is easier to place:

    forward           backward tasks follow their forward tasks
    coplace           a producer joins the group of its only consumer
    fuse              connected tasks of one group become one task
    celeritas-fusion  neighbours in a topological order become one task, at optimal breakpoints
    giph-groups       the cheapest task with a single producer joins this producer, until a given number is left

A valid schedule of their reduced problem, once restored, is valid in the original, except for deadlines, under the
`sum` memory model.
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
