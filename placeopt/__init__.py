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
    from placeopt.bounding import bounds as bounds
    from placeopt.comparison.matrix import compare as compare
    from placeopt.comparison.records import Record as Record
    from placeopt.comparison.tables import Comparison as Comparison
    from placeopt.compiler import compile_spec as compile  # noqa: F401  the public name
    from placeopt.compiler import load as load
    from placeopt.errors import DocumentError as DocumentError
    from placeopt.errors import InternalError as InternalError
    from placeopt.errors import Issue as Issue
    from placeopt.errors import MissingExtraError as MissingExtraError
    from placeopt.errors import PlaceoptError as PlaceoptError
    from placeopt.errors import PlanError as PlanError
    from placeopt.errors import SpecError as SpecError
    from placeopt.errors import UnsupportedError as UnsupportedError
    from placeopt.errors import UsageError as UsageError
    from placeopt.explanation import Explanation as Explanation
    from placeopt.explanation import explain as explain
    from placeopt.files import size_limit as size_limit
    from placeopt.formats.dnn_partitioning import read_dnn_partitioning as read_dnn_partitioning
    from placeopt.formats.graphs import from_networkx as from_networkx
    from placeopt.formats.graphs import to_networkx as to_networkx
    from placeopt.ir import Objective as Objective
    from placeopt.ir import Problem as Problem
    from placeopt.ir import Term as Term
    from placeopt.ir import build_problem as build_problem
    from placeopt.metrics import measure as measure
    from placeopt.page import write_report as write_report
    from placeopt.pipeline import solve as solve
    from placeopt.plan import read_plan as read_plan
    from placeopt.plan import write_plan as write_plan
    from placeopt.registry import solver_names as solvers  # noqa: F401  the public name
    from placeopt.replacement import Replacement as Replacement
    from placeopt.replacement import replace as replace
    from placeopt.result import Result as Result
    from placeopt.schedule import Schedule as Schedule
    from placeopt.schedule import Transfers as Transfers
    from placeopt.simulation import retime as retime
    from placeopt.simulation import simulate as simulate
    from placeopt.simulation import simulate_noisy as simulate_noisy
    from placeopt.solver import Progress as Progress
    from placeopt.solver import Termination as Termination
    from placeopt.spec import Spec as Spec
    from placeopt.traces import write_trace as write_trace
    from placeopt.verifier import verify as verify
    from placeopt.warming import Warmed as Warmed
    from placeopt.warming import warm as warm

_HOME = {
    "bounds": ("placeopt.bounding", "bounds"),
    "compare": ("placeopt.comparison.matrix", "compare"),
    "Record": ("placeopt.comparison.records", "Record"),
    "Comparison": ("placeopt.comparison.tables", "Comparison"),
    "compile": ("placeopt.compiler", "compile_spec"),
    "load": ("placeopt.compiler", "load"),
    "DocumentError": ("placeopt.errors", "DocumentError"),
    "InternalError": ("placeopt.errors", "InternalError"),
    "Issue": ("placeopt.errors", "Issue"),
    "MissingExtraError": ("placeopt.errors", "MissingExtraError"),
    "PlaceoptError": ("placeopt.errors", "PlaceoptError"),
    "PlanError": ("placeopt.errors", "PlanError"),
    "SpecError": ("placeopt.errors", "SpecError"),
    "UnsupportedError": ("placeopt.errors", "UnsupportedError"),
    "UsageError": ("placeopt.errors", "UsageError"),
    "Explanation": ("placeopt.explanation", "Explanation"),
    "explain": ("placeopt.explanation", "explain"),
    "size_limit": ("placeopt.files", "size_limit"),
    "read_dnn_partitioning": ("placeopt.formats.dnn_partitioning", "read_dnn_partitioning"),
    "from_networkx": ("placeopt.formats.graphs", "from_networkx"),
    "to_networkx": ("placeopt.formats.graphs", "to_networkx"),
    "Objective": ("placeopt.ir", "Objective"),
    "Problem": ("placeopt.ir", "Problem"),
    "Term": ("placeopt.ir", "Term"),
    "build_problem": ("placeopt.ir", "build_problem"),
    "measure": ("placeopt.metrics", "measure"),
    "write_report": ("placeopt.page", "write_report"),
    "solve": ("placeopt.pipeline", "solve"),
    "read_plan": ("placeopt.plan", "read_plan"),
    "write_plan": ("placeopt.plan", "write_plan"),
    "solvers": ("placeopt.registry", "solver_names"),
    "Replacement": ("placeopt.replacement", "Replacement"),
    "replace": ("placeopt.replacement", "replace"),
    "Result": ("placeopt.result", "Result"),
    "Schedule": ("placeopt.schedule", "Schedule"),
    "Transfers": ("placeopt.schedule", "Transfers"),
    "retime": ("placeopt.simulation", "retime"),
    "simulate": ("placeopt.simulation", "simulate"),
    "simulate_noisy": ("placeopt.simulation", "simulate_noisy"),
    "Progress": ("placeopt.solver", "Progress"),
    "Termination": ("placeopt.solver", "Termination"),
    "Spec": ("placeopt.spec", "Spec"),
    "write_trace": ("placeopt.traces", "write_trace"),
    "verify": ("placeopt.verifier", "verify"),
    "Warmed": ("placeopt.warming", "Warmed"),
    "warm": ("placeopt.warming", "warm"),
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOME[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
