"""A lower bound of the makespan by refuting makespans: start windows, and clusters of tasks on one device.

**Definitions.** Suppose that a schedule has a makespan of at most T. By class c, S[v, c] is a tick before which task v
does not start, E[v, c] one after which it does not start; both hold if v runs on a device of class c. At first, S is
the head of v, and E = T - tail - duration (`placeopt.bounding.quick.paths`). A class is *open* for v while S <= E. A
*cluster* is a set of tasks that run on one device; at first, the colocation groups. Let p be durations, and for an edge
(u, w) let

    remote(c) = min over open classes a of S[u, a] + p[u, a] + the transfer from a device of a to another one of c.

**Rules.** All hold in every schedule within T.

- *edge*: w starts on c at min(remote(c), S[u, c] + p[u, c]) or later; if u and w share a device, at S[u, c] + p[u, c];
  if not, at remote(c). The same holds backwards for E.
- *merging*: if remote(c) > E[w, c] for all open c, the data comes too late from any other device. So u and w, hence
  their clusters, share a device. Its class is open for all their tasks, and has the memory for what they hold.
- *order*: if i cannot run before j on the device of their cluster, since S[i, c] + p[i, c] > E[j, c], then j runs
  before i, which raises S[i, c] and lowers E[j, c]. If neither can, or if the tasks that must run within an interval
  take longer than it lasts, class c is closed for the cluster.
- *parting*: two clusters do not share a device if on each class open for both, some pair of their tasks can run in
  neither order, or their memory does not fit; or if a separation or an edge that is known to be cut joins them.
- A task without an open class refutes T: the makespan is at least T + 1.
- *probing*: if the rules refute T once the ends of an undecided edge are assumed to share a device, they do not, and
  vice versa.

Proof. Each rule states what follows from T, the windows and the clusters, if these hold; by induction, the last ones
hold. Ports, memory tiers, live memory and resources only delay a schedule more. ∎ Devices that run several tasks at
once do not: with one, no makespan is refuted.

Applied to parts of the rules only, or stopped early, windows are wider and still valid. A search over T finds the
largest that is refuted: first without probing, then with.

The method is "destructive improvement" (R. Klein, A. Scholl, "Computing lower bounds by destructive improvement: an
application to resource-constrained project scheduling", EJOR 112 (1999), doi:10.1016/S0377-2217(97)00442-6). Orders
that follow from windows are from J. Carlier, E. Pinson, "An algorithm for solving the job-shop problem", Management
Science 35 (1989), doi:10.1287/mnsc.35.2.164, and probing ("shaving") from P. Martin, D. B. Shmoys, "A new approach to
computing optimal schedules for the job-shop scheduling problem", IPCO 1996, doi:10.1007/3-540-61310-2_29. The devices
of tasks are fixed there; here clusters, merging and parting replace them.
"""

from __future__ import annotations

from placeopt.bounding.destructive.search import destructive_bound

__all__ = ["destructive_bound"]
