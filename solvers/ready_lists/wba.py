"""WBA: the workflow-based approach, randomised greedy schedules of which the best is kept.

J. Blythe, S. Jain, E. Deelman, Y. Gil, K. Vahi, A. Mandal, K. Kennedy: Task scheduling strategies for workflow-based
applications in grids. CCGrid 2005, pages 759-767, doi:10.1109/CCGRID.2005.1558639. A greedy randomised adaptive search
(GRASP): schedules are made again and again, and the best is kept. Each is made batch by batch; a batch is all tasks
whose producers are in earlier ones. The increase I of a pair of a task and a device is what the makespan grows by if
the task runs there next; of all pairs of the batch with an increase up to I_min + alpha (I_max - I_min) one is drawn.

The paper itself was not at hand: this follows what later papers and open implementations tell of it.

Departures from the paper:

- It goes on until its time is up; here the number of schedules is a setting, and the time limit only cuts it short.
- Pairs are drawn uniformly from the seed; the order in which they are numbered is that of the batch.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times count like the arrival of data; deadlines decide which schedule is best, see
  `placeopt_solvers._constructive.construction`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import Field

from placeopt.kernels import kernel
from placeopt.model.arrays import Float
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Clock, Info, Options, Settings, Termination

from .._constructive.construction import Build, Built, Constructed, as_answer, best_of, constructed
from .._constructive.groups import Groups
from .._constructive.placement_ops import open_to
from .._constructive.readiness import DONE, Ready, admit_sources, make_ready, place_ready, ready_built, scan_steps
from .._constructive.timeline import NEVER, Case, Timeline, make_case, make_timeline


class WbaSettings(Settings):
    """How greedy, how often."""

    alpha: float = Field(default=0.5, ge=0, le=1)
    """Pairs up to this share of the way from the least to the largest increase are drawn from; 0: the least only."""
    schedules: int = Field(default=10, ge=1)
    """How many schedules are made."""


class Wba:
    """The best of some randomised greedy schedules; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "wba"
    info: ClassVar[Info] = Info(
        summary="the best of randomised greedy schedules, by increase of the makespan (Blythe et al. 2005)",
        family="ready lists",
        guarantee="none",
        complexity="O(n w m + e m) for each schedule and w tasks ready at once",
        citation="""@inproceedings{blythe2005task,
  author    = {Jim Blythe and Sonal Jain and Ewa Deelman and Yolanda Gil and Karan Vahi and Anirban Mandal and
               Ken Kennedy},
  title     = {Task scheduling strategies for workflow-based applications in grids},
  booktitle = {IEEE International Symposium on Cluster Computing and the Grid (CCGrid)},
  pages     = {759--767},
  year      = {2005},
  doi       = {10.1109/CCGRID.2005.1558639}
}""",
    )
    settings_type: ClassVar[type[Settings]] = WbaSettings

    def solve(self, problem: Problem, options: Options, settings: WbaSettings) -> Answer:
        """The best schedule, or FAILED where none finds a placement that fits into memory."""
        clock = Clock(options.time_limit)
        rng = np.random.default_rng(options.seed)
        found: list[Constructed] = []
        for _ in range(settings.schedules):
            build = drawn(problem, rng.random(problem.n_tasks), settings.alpha)
            found.append(constructed(problem, build))
            if clock.over or options.should_stop():
                break
        answer = replace(as_answer(problem, best_of(problem, found)), stats={"schedules": len(found)})
        if len(found) == settings.schedules or answer.schedule is None:
            return answer
        return replace(answer, termination=Termination.TIME_LIMIT if clock.over else Termination.INTERRUPTED)


def drawn(problem: Problem, chance: Float, alpha: float) -> Build:
    """A randomised schedule; `chance` (n,) in [0, 1) is what is drawn in each step."""
    # Each step looks up to three times at every ready task on every device.
    work = 3 * scan_steps(problem) * max(problem.n_devices, 1)

    def build(groups: Groups) -> Built:
        line, ready = make_timeline(problem, groups), make_ready(problem)
        run = draw_pairs.select(work, chunked=True)
        return ready_built(problem, line, run(make_case(problem, groups), line, ready, chance, alpha))

    return build


@kernel(open_to, allocates=False)
def increase(case: Case, line: Timeline, ready: Ready, i: int, d: int, makespan: int) -> int:
    """I: by how much the makespan grows if ready task i runs on device d next; -1 if it cannot."""
    if not open_to(case, line, i, d):
        return -1
    end: int = max(ready.data[i, d], line.free[d]) + case.duration[i, d]
    return max(end - makespan, 0)


@kernel(admit_sources, place_ready, increase, allocates=False)
def draw_pairs(case: Case, line: Timeline, ready: Ready, chance: Float, alpha: float) -> int:
    """Place all tasks batch by batch; DONE, or the task that no device can take."""
    m = len(line.room)
    admit_sources(case, line, ready)
    makespan, step, batch_end = 0, 0, ready.span[1]
    while ready.span[0] < batch_end:
        least, most = NEVER, -1
        for position in range(ready.span[0], batch_end):
            possible = False
            for d in range(m):
                growth = increase(case, line, ready, ready.task[position], d, makespan)
                if growth >= 0:
                    possible = True
                    least, most = min(least, growth), max(most, growth)
            if not possible:
                task: int = ready.task[position]
                return task
        threshold = least + alpha * (most - least)
        count = 0
        for position in range(ready.span[0], batch_end):
            for d in range(m):
                if 0 <= increase(case, line, ready, ready.task[position], d, makespan) <= threshold:
                    count += 1
        left = int(chance[step] * count)
        chosen, device = -1, -1
        for position in range(ready.span[0], batch_end):
            for d in range(m):
                if chosen < 0 and 0 <= increase(case, line, ready, ready.task[position], d, makespan) <= threshold:
                    if left == 0:
                        chosen, device = position, d
                    left -= 1
            if chosen >= 0:
                break
        i = ready.task[chosen]
        place_ready(case, line, ready, chosen, device)
        makespan = max(makespan, line.end[i])
        step += 1
        if ready.span[0] == batch_end:
            batch_end = ready.span[1]
    return DONE
