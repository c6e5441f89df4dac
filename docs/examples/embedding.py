"""Solve inside an application.

How does an application run a solver in a thread, show its progress and stop it?

A scheduler service has two rules. It takes the first schedule that is a tenth shorter than HEFT's. It never waits
longer than 20 seconds. The problem has 60 random tasks on six devices.
"""

from concurrent.futures import ThreadPoolExecutor
from queue import Empty, Queue
from threading import Event

import placeopt as po
from placeopt.generate import random_document

# %%
# The solver reports each new incumbent and each new bound to `on_progress`, one call at a time, from any of its
# threads. It calls `should_stop` many times per second. A queue and an event are all that the two threads share.
problem = po.compile(random_document(60, 6, seed=4, data=1000))
heft = po.solve(problem, "heft")
assert heft.makespan is not None
target = 9 * heft.makespan // 10
reports: Queue[po.Progress] = Queue()
stop = Event()

# %%
# Several solves can run in several threads. An error in the solver or in `on_progress` reaches the caller through
# `future.result()`.
seen: list[po.Progress] = []
with ThreadPoolExecutor() as pool:
    future = pool.submit(
        po.solve, problem, "annealing", time_limit=20, on_progress=reports.put, should_stop=stop.is_set
    )  # fmt: skip
    while not future.done():
        try:
            seen.append(reports.get(timeout=0.1))
        except Empty:
            continue
        if seen[-1].objective is not None and seen[-1].objective <= target:
            stop.set()
    result = future.result()
objectives = [report.objective for report in seen if report.objective is not None]
print(f"stopped because: {result.termination.value}")
short = result.makespan is not None and result.makespan <= target
print(f"verified: {result.feasible}, at least a tenth shorter than HEFT: {short}")
print(f"reports arrive in order: {objectives == sorted(objectives, reverse=True)}")

# %%
# A stopped run is a normal answer: `termination` states the reason, and the best schedule is verified as always. If the
# search takes longer than 20 seconds, the reason is `time_limit`, and the service has the best schedule found by then.
#
# ![Makespan over time: the incumbent falls until the service stops the search](../images/examples/embedding.png)
result.plot("convergence", "embedding.png", title="The search until the service stops it")
