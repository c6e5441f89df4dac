"""Place the operators of a computation graph on devices, and know how far from optimal the placement is.

    import placeopt as po

    problem = po.load("problems/inception.yaml")
    result = po.solve(problem, "cp-sat", time_limit=30)
    print(result.objective, result.bound, result.gap)

Nothing here prints, reads the environment or keeps global state; names load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placeopt.bounding.portfolio import bounds as bounds
    from placeopt.errors import DocumentError as DocumentError
    from placeopt.errors import InternalError as InternalError
    from placeopt.errors import Issue as Issue
    from placeopt.errors import MissingExtraError as MissingExtraError
    from placeopt.errors import PlaceoptError as PlaceoptError
    from placeopt.errors import PlanError as PlanError
    from placeopt.errors import SpecError as SpecError
    from placeopt.errors import UnsupportedError as UnsupportedError
    from placeopt.errors import UsageError as UsageError
    from placeopt.io.compiler import compile_spec as compile  # noqa: F401  the public name
    from placeopt.io.compiler import load as load
    from placeopt.io.files import size_limit as size_limit
    from placeopt.io.formats.dnn_partitioning import read_dnn_partitioning as read_dnn_partitioning
    from placeopt.io.formats.graphs import from_networkx as from_networkx
    from placeopt.io.formats.graphs import to_networkx as to_networkx
    from placeopt.io.plan import read_plan as read_plan
    from placeopt.io.plan import write_plan as write_plan
    from placeopt.io.spec import Spec as Spec
    from placeopt.model.building import build_problem as build_problem
    from placeopt.model.metrics import measure as measure
    from placeopt.model.problem import Objective as Objective
    from placeopt.model.problem import Problem as Problem
    from placeopt.model.problem import Term as Term
    from placeopt.model.schedule import Schedule as Schedule
    from placeopt.model.schedule import Transfers as Transfers
    from placeopt.simulation import retime as retime
    from placeopt.simulation import simulate as simulate
    from placeopt.simulation import simulate_noisy as simulate_noisy
    from placeopt.solver import Progress as Progress
    from placeopt.solver import Termination as Termination
    from placeopt.solver.registry import solver_names as solvers  # noqa: F401  the public name
    from placeopt.solving.pipeline import solve as solve
    from placeopt.solving.result import Result as Result
    from placeopt.solving.warming import Warmed as Warmed
    from placeopt.solving.warming import warm as warm
    from placeopt.studies.comparison.matrix import compare as compare
    from placeopt.studies.comparison.records import Record as Record
    from placeopt.studies.comparison.result import Comparison as Comparison
    from placeopt.studies.explanation import Explanation as Explanation
    from placeopt.studies.explanation import explain as explain
    from placeopt.studies.replacement import Replacement as Replacement
    from placeopt.studies.replacement import replace as replace
    from placeopt.verifier import verify as verify
    from placeopt.views.page import write_report as write_report
    from placeopt.views.traces import write_trace as write_trace

_HOME = {
    "bounds": ("placeopt.bounding.portfolio", "bounds"),
    "compare": ("placeopt.studies.comparison.matrix", "compare"),
    "Record": ("placeopt.studies.comparison.records", "Record"),
    "Comparison": ("placeopt.studies.comparison.result", "Comparison"),
    "compile": ("placeopt.io.compiler", "compile_spec"),
    "load": ("placeopt.io.compiler", "load"),
    "DocumentError": ("placeopt.errors", "DocumentError"),
    "InternalError": ("placeopt.errors", "InternalError"),
    "Issue": ("placeopt.errors", "Issue"),
    "MissingExtraError": ("placeopt.errors", "MissingExtraError"),
    "PlaceoptError": ("placeopt.errors", "PlaceoptError"),
    "PlanError": ("placeopt.errors", "PlanError"),
    "SpecError": ("placeopt.errors", "SpecError"),
    "UnsupportedError": ("placeopt.errors", "UnsupportedError"),
    "UsageError": ("placeopt.errors", "UsageError"),
    "Explanation": ("placeopt.studies.explanation", "Explanation"),
    "explain": ("placeopt.studies.explanation", "explain"),
    "size_limit": ("placeopt.io.files", "size_limit"),
    "read_dnn_partitioning": ("placeopt.io.formats.dnn_partitioning", "read_dnn_partitioning"),
    "from_networkx": ("placeopt.io.formats.graphs", "from_networkx"),
    "to_networkx": ("placeopt.io.formats.graphs", "to_networkx"),
    "Objective": ("placeopt.model.problem", "Objective"),
    "Problem": ("placeopt.model.problem", "Problem"),
    "Term": ("placeopt.model.problem", "Term"),
    "build_problem": ("placeopt.model.building", "build_problem"),
    "measure": ("placeopt.model.metrics", "measure"),
    "write_report": ("placeopt.views.page", "write_report"),
    "solve": ("placeopt.solving.pipeline", "solve"),
    "read_plan": ("placeopt.io.plan", "read_plan"),
    "write_plan": ("placeopt.io.plan", "write_plan"),
    "solvers": ("placeopt.solver.registry", "solver_names"),
    "Replacement": ("placeopt.studies.replacement", "Replacement"),
    "replace": ("placeopt.studies.replacement", "replace"),
    "Result": ("placeopt.solving.result", "Result"),
    "Schedule": ("placeopt.model.schedule", "Schedule"),
    "Transfers": ("placeopt.model.schedule", "Transfers"),
    "retime": ("placeopt.simulation", "retime"),
    "simulate": ("placeopt.simulation", "simulate"),
    "simulate_noisy": ("placeopt.simulation", "simulate_noisy"),
    "Progress": ("placeopt.solver", "Progress"),
    "Termination": ("placeopt.solver", "Termination"),
    "Spec": ("placeopt.io.spec", "Spec"),
    "write_trace": ("placeopt.views.traces", "write_trace"),
    "verify": ("placeopt.verifier", "verify"),
    "Warmed": ("placeopt.solving.warming", "Warmed"),
    "warm": ("placeopt.solving.warming", "warm"),
}

__all__ = sorted(_HOME)

__path__.append(f"{__path__[0]}/former")  # names of modules that have moved


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOME[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
