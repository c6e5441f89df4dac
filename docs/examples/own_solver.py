"""Your own solver as a package.

How does a solver from another package become available, and how good is it?

A solver is a class with a method `solve`, and its package names it in an entry point of the group `placeopt.solvers`.
The package here is `placeopt-random-search`, a solver of 40 lines that tries random placements. [How to add a
solver](../new-solver.md) shows all of it.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import placeopt as po
from placeopt.generate import random_document
from placeopt.testing import CASES, check_solver

# %%
# Usually, `pip install .` in the folder of the package is sufficient. To leave the environment unchanged, this script
# installs a copy of the package into a temporary folder and adds the folder to the path. Without network access, pip
# needs setuptools 77 or later in the environment.
PACKAGE = Path(__file__).parents[2] / "tests" / "third_party" / "placeopt-random-search"
temporary = TemporaryDirectory()
folder = Path(temporary.name)
shutil.copytree(PACKAGE, folder / "source")
pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
subprocess.run([*pip, "--target", folder / "site", folder / "source"], check=True)
sys.path.insert(0, str(folder / "site"))
print(f"random-search is installed: {'random-search' in po.solvers()}")

# %%
# The conformance suite runs the solver on tiny problems with known optima. It checks schedules, bounds, repeatability
# and limits, as for the solvers that come with placeopt.
for case in CASES:
    check_solver("random-search", case, samples=50)
print(f"{len(CASES)} cases of the conformance suite passed")

# %%
# The name now works wherever a solver can be selected: in `po.solve`, in `po.compare`, on the command line. The class
# of the package checks the settings, and every schedule is verified and gets a gap.
problem = po.compile(random_document(20, 4, seed=1))
samples = [1, 3, 10, 30, 100, 300, 1000]
makespans = []
for count in samples:
    result = po.solve(problem, "random-search", samples=count, seed=1)
    assert result.makespan is not None
    makespans.append(result.makespan / 1000)
    print(f"{count:5} samples  {makespans[-1]:.1f} s  gap {result.gap:.0%}")
heft = (po.solve(problem, "heft").makespan or 0) / 1000
print(f"heft           {heft:.1f} s")

# %%
# ![Makespan by the number of samples, above that of HEFT](../images/examples/own_solver.png)
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
axes.semilogx(samples, makespans, "o-", color="#0072b2", linewidth=2, label="random-search")
axes.fill_between(samples, makespans, heft, color="#0072b2", alpha=0.12)
axes.axhline(heft, color="#e69f00", linewidth=2, label="heft")
axes.set(ylim=(80, 135), xlabel="samples", ylabel="makespan (s)")
axes.set_title("A solver from another package", loc="left", weight="bold")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="upper right")
figure.savefig("own_solver.png", dpi=130)
