"""Robustness under noise.

Is the schedule with the shortest makespan still the best one if durations vary?

A plan is made with expected durations, but each run takes a little more or less. The problem has 80 random tasks on
four devices. The placement and the order of the tasks on each device come from the plan.
"""

import matplotlib.pyplot as plt

import placeopt as po
from placeopt.generate import random_document

# %%
# The problem gets two schedules: one by HEFT, and a shorter one by a search.
problem = po.compile(random_document(80, 4, seed=4, data=20))
results = {
    "HEFT": po.solve(problem, "heft"),
    "annealing": po.solve(problem, "annealing", rounds=20_000, workers=1),
}

# %%
# `po.simulate_noisy` executes each schedule 5,000 times. Each duration and each transfer time is drawn uniformly
# between 0.5 and 1.5 times its expected value.
noisy = {}
for name, result in results.items():
    assert result.schedule is not None
    assert result.makespan is not None
    runs = po.simulate_noisy(problem, result.schedule, noise=0.5, runs=5000, seed=0)
    noisy[name] = runs.makespans / 1000
    planned, mean, late = result.makespan / 1000, runs.mean / 1000, runs.quantile(0.95) / 1000
    print(f"{name:9}  planned {planned:.1f} s  mean {mean:.1f} s  95% of the runs within {late:.1f} s")

# %%
# Most runs take longer than planned: a task with several inputs waits for the last of them. The shorter schedule
# loses its lead, because the search optimised it for the expected durations only. If noise is expected, compare
# quantiles instead of planned makespans.
#
# ![Makespans of 5,000 runs of both schedules as histograms](../images/examples/robustness.png)
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
for (name, makespans), color in zip(noisy.items(), ("#0072b2", "#e69f00"), strict=True):
    axes.hist(makespans, bins=70, range=(225, 310), color=color, alpha=0.5, label=f"{name}, 5,000 runs")
    axes.axvline((results[name].makespan or 0) / 1000, color=color, linestyle="--", label=f"{name}, planned")
axes.set(xlabel="makespan (s)", ylabel="runs")
axes.set_title("Two schedules under noise", loc="left", weight="bold")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
figure.savefig("robustness.png", dpi=130)
