"""Place the operators of a computation graph on devices, and know how far from optimal the placement is.

    import placeopt as po

    problem = po.load("problems/inception.yaml")
    result = po.solve(problem, "cp-sat", time_limit=30)
    print(result.objective, result.bound, result.gap)

Nothing here prints, reads the environment or keeps global state; names load on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is not imported: Ctrl-C ends the command without a traceback once `placeopt.cli` runs
__version__: str
"""The installed version; empty for a checkout that is not installed."""

if TYPE_CHECKING:
    # mypy does not export a name that is imported under another one, unless it is listed.
    __all__ = ["compile", "solvers"]

    from placeopt.allocation.files import load_buffers as load_buffers
    from placeopt.allocation.files import write_allocation as write_allocation
    from placeopt.allocation.plans import allocate_plan as allocate_plan
    from placeopt.allocation.plans import plan_buffers as plan_buffers
    from placeopt.allocation.problem import Buffers as Buffers
    from placeopt.allocation.problem import build_buffers as build_buffers
    from placeopt.allocation.solving import Allocation as Allocation
    from placeopt.allocation.solving import allocate as allocate
    from placeopt.allocation.verification import AllocationReport as AllocationReport
    from placeopt.allocation.verification import verify_allocation as verify_allocation
    from placeopt.bounding.quick import Bound as Bound
    from placeopt.bridges.exporters.fx_parts import SplitCallback as SplitCallback
    from placeopt.bridges.exporters.fx_parts import split_callback as split_callback
    from placeopt.bridges.exporters.pytorch import device_map as device_map
    from placeopt.bridges.exporters.pytorch import split_spec as split_spec
    from placeopt.bridges.importers.dask_graph import DaskImport as DaskImport
    from placeopt.bridges.importers.dask_graph import from_dask as from_dask
    from placeopt.bridges.importers.graphs.dnn_partitioning import read_dnn_partitioning as read_dnn_partitioning
    from placeopt.bridges.importers.imported import Imported as Imported
    from placeopt.bridges.importers.imported import ImportOptions as ImportOptions
    from placeopt.bridges.importers.onnx_model import from_onnx as from_onnx
    from placeopt.bridges.importers.registry import import_file as import_file
    from placeopt.bridges.importers.torch_export import from_torch as from_torch
    from placeopt.bridges.running.dask_cluster import DaskRun as DaskRun
    from placeopt.bridges.running.dask_cluster import run_on_dask as run_on_dask
    from placeopt.bridges.running.execution import run_onnx as run_onnx
    from placeopt.bridges.running.report import RunReport as RunReport
    from placeopt.bridges.running.torch_execution import run_torch as run_torch
    from placeopt.errors import CertificateError as CertificateError
    from placeopt.errors import DocumentError as DocumentError
    from placeopt.errors import ExecutionError as ExecutionError
    from placeopt.errors import InternalError as InternalError
    from placeopt.errors import Issue as Issue
    from placeopt.errors import MissingExtraError as MissingExtraError
    from placeopt.errors import PlaceoptError as PlaceoptError
    from placeopt.errors import PlanError as PlanError
    from placeopt.errors import SolverError as SolverError
    from placeopt.errors import SpecError as SpecError
    from placeopt.errors import UnsupportedError as UnsupportedError
    from placeopt.errors import UsageError as UsageError
    from placeopt.io.catalogue import DeviceInfo as DeviceInfo
    from placeopt.io.catalogue import LinkInfo as LinkInfo
    from placeopt.io.catalogue import device_info as device_info
    from placeopt.io.catalogue import device_names as device_names
    from placeopt.io.catalogue import link_info as link_info
    from placeopt.io.catalogue import link_names as link_names
    from placeopt.io.compiler import compile_spec as compile
    from placeopt.io.compiler import load as load
    from placeopt.io.compiler import loads as loads
    from placeopt.io.files import size_limit as size_limit
    from placeopt.io.formats.documents import write_problem as write_problem
    from placeopt.io.formats.graphs import from_networkx as from_networkx
    from placeopt.io.formats.graphs import to_networkx as to_networkx
    from placeopt.io.plan import Plan as Plan
    from placeopt.io.plan import plan_document as plan_document
    from placeopt.io.plan import read_plan as read_plan
    from placeopt.io.plan import write_plan as write_plan
    from placeopt.io.spec import Spec as Spec
    from placeopt.model.building import build_problem as build_problem
    from placeopt.model.layout import Layout as Layout
    from placeopt.model.layout import build_layout as build_layout
    from placeopt.model.memory import fits as fits
    from placeopt.model.metrics import DeviceUse as DeviceUse
    from placeopt.model.metrics import Metrics as Metrics
    from placeopt.model.metrics import critical_path as critical_path
    from placeopt.model.metrics import device_uses as device_uses
    from placeopt.model.metrics import measure as measure
    from placeopt.model.objective import evaluate as evaluate
    from placeopt.model.pipeline import Pipeline as Pipeline
    from placeopt.model.problem import Objective as Objective
    from placeopt.model.problem import Problem as Problem
    from placeopt.model.problem import Term as Term
    from placeopt.model.resource_use import ResourceUse as ResourceUse
    from placeopt.model.resource_use import resource_uses as resource_uses
    from placeopt.model.resources import Resources as Resources
    from placeopt.model.resources import build_resources as build_resources
    from placeopt.model.schedule import Offsets as Offsets
    from placeopt.model.schedule import Schedule as Schedule
    from placeopt.model.schedule import Stages as Stages
    from placeopt.model.schedule import Transfers as Transfers
    from placeopt.model.schedule import lateness as lateness
    from placeopt.model.setups import Setups as Setups
    from placeopt.model.setups import build_setups as build_setups
    from placeopt.model.shared_links import SharedLink as SharedLink
    from placeopt.model.shared_links import SharedLinks as SharedLinks
    from placeopt.model.shared_links import build_shared_links as build_shared_links
    from placeopt.model.stage_use import StageUse as StageUse
    from placeopt.model.stage_use import stage_uses as stage_uses
    from placeopt.model.tiers import Tiers as Tiers
    from placeopt.model.tiers import build_tiers as build_tiers
    from placeopt.model.unavailability import Unavailability as Unavailability
    from placeopt.model.unavailability import build_unavailability as build_unavailability
    from placeopt.orchestration.consolidation import Consolidation as Consolidation
    from placeopt.orchestration.consolidation import Pieces as Pieces
    from placeopt.orchestration.consolidation import consolidate as consolidate
    from placeopt.orchestration.jobs import Job as Job
    from placeopt.orchestration.jobs import start as start
    from placeopt.orchestration.modelling.builder import Model as Model
    from placeopt.orchestration.pipeline import solve as solve
    from placeopt.orchestration.rechecking import check_certificate as check_certificate
    from placeopt.orchestration.result import Result as Result
    from placeopt.orchestration.result import WallTime as WallTime
    from placeopt.passes import Applied as Applied
    from placeopt.passes import Pass as Pass
    from placeopt.passes import Reduction as Reduction
    from placeopt.passes import apply_passes as apply_passes
    from placeopt.protocol import ALL_METRICS as ALL_METRICS
    from placeopt.protocol import Answer as Answer
    from placeopt.protocol import Clock as Clock
    from placeopt.protocol import Info as Info
    from placeopt.protocol import Options as Options
    from placeopt.protocol import Progress as Progress
    from placeopt.protocol import Settings as Settings
    from placeopt.protocol import Solver as Solver
    from placeopt.protocol import Termination as Termination
    from placeopt.protocol.registry import Setting as Setting
    from placeopt.protocol.registry import SolverInfo as SolverInfo
    from placeopt.protocol.registry import solver_info as solver_info
    from placeopt.protocol.registry import solver_names as solvers
    from placeopt.proving.portfolio import bounds as bounds
    from placeopt.serving.changes import Replanned as Replanned
    from placeopt.serving.changes import ServingGain as ServingGain
    from placeopt.serving.changes import replace_serving as replace_serving
    from placeopt.serving.changes import whatif_serving as whatif_serving
    from placeopt.serving.cheapest import CheapestResult as CheapestResult
    from placeopt.serving.cheapest import cheapest_serving as cheapest_serving
    from placeopt.serving.exporting import export_serving as export_serving
    from placeopt.serving.files import load_serving as load_serving
    from placeopt.serving.plan import Replica as Replica
    from placeopt.serving.plan import ServingPlan as ServingPlan
    from placeopt.serving.plan_files import read_replicas as read_replicas
    from placeopt.serving.plan_files import read_serving_plan as read_serving_plan
    from placeopt.serving.plan_files import write_replicas as write_replicas
    from placeopt.serving.plan_files import write_serving_plan as write_serving_plan
    from placeopt.serving.problem import Serving as Serving
    from placeopt.serving.problem import build_serving as build_serving
    from placeopt.serving.replicas import replicated_serving as replicated_serving
    from placeopt.serving.result import ReplicatedResult as ReplicatedResult
    from placeopt.serving.result import ServingResult as ServingResult
    from placeopt.serving.solving import solve_serving as solve_serving
    from placeopt.serving.steady_state import SteadyState as SteadyState
    from placeopt.serving.steady_state import simulate_serving as simulate_serving
    from placeopt.serving.verification import ServingReport as ServingReport
    from placeopt.serving.verification import verify_replicas as verify_replicas
    from placeopt.serving.verification import verify_serving as verify_serving
    from placeopt.simulation import PipelineRuns as PipelineRuns
    from placeopt.simulation import retime as retime
    from placeopt.simulation import run_pipeline as run_pipeline
    from placeopt.simulation import simulate as simulate
    from placeopt.simulation.noise import NoisyRuns as NoisyRuns
    from placeopt.simulation.noise import simulate_noisy as simulate_noisy
    from placeopt.studies.comparison.matrix import compare as compare
    from placeopt.studies.comparison.records import Record as Record
    from placeopt.studies.comparison.result import Comparison as Comparison
    from placeopt.studies.explanation import Explanation as Explanation
    from placeopt.studies.explanation import explain as explain
    from placeopt.studies.losses import Losses as Losses
    from placeopt.studies.losses import losses as losses
    from placeopt.studies.pareto import Pareto as Pareto
    from placeopt.studies.pareto import pareto as pareto
    from placeopt.studies.replacement import Replacement as Replacement
    from placeopt.studies.replacement import replace as replace
    from placeopt.studies.sensitivity import WhatIf as WhatIf
    from placeopt.studies.sensitivity import whatif as whatif
    from placeopt.verifier import Report as Report
    from placeopt.verifier import Rule as Rule
    from placeopt.verifier import Violation as Violation
    from placeopt.verifier import verify as verify
    from placeopt.verifier.certificates import Checked as Checked
    from placeopt.verifier.certificates import Trusted as Trusted
    from placeopt.views.page import write_report as write_report
    from placeopt.views.traces import write_trace as write_trace

_NAMES = {
    "placeopt.allocation.files": "load_buffers write_allocation",
    "placeopt.allocation.plans": "allocate_plan plan_buffers",
    "placeopt.allocation.problem": "Buffers build_buffers",
    "placeopt.allocation.solving": "Allocation allocate",
    "placeopt.allocation.verification": "AllocationReport verify_allocation",
    "placeopt.proving.portfolio": "bounds",
    "placeopt.bounding.quick": "Bound",
    "placeopt.bridges.exporters.fx_parts": "SplitCallback split_callback",
    "placeopt.bridges.exporters.pytorch": "device_map split_spec",
    "placeopt.bridges.importers.dask_graph": "DaskImport from_dask",
    "placeopt.bridges.importers.graphs.dnn_partitioning": "read_dnn_partitioning",
    "placeopt.bridges.importers.imported": "ImportOptions Imported",
    "placeopt.bridges.importers.onnx_model": "from_onnx",
    "placeopt.bridges.importers.registry": "import_file",
    "placeopt.bridges.importers.torch_export": "from_torch",
    "placeopt.bridges.running.dask_cluster": "DaskRun run_on_dask",
    "placeopt.bridges.running.execution": "run_onnx",
    "placeopt.bridges.running.report": "RunReport",
    "placeopt.bridges.running.torch_execution": "run_torch",
    "placeopt.errors": (
        "CertificateError DocumentError ExecutionError InternalError Issue MissingExtraError PlaceoptError PlanError "
        "SolverError SpecError UnsupportedError UsageError"
    ),
    "placeopt.io.catalogue": "DeviceInfo LinkInfo device_info device_names link_info link_names",
    "placeopt.io.compiler": "compile_spec=compile load loads",
    "placeopt.io.files": "size_limit",
    "placeopt.io.formats.documents": "write_problem",
    "placeopt.io.formats.graphs": "from_networkx to_networkx",
    "placeopt.io.plan": "Plan plan_document read_plan write_plan",
    "placeopt.io.spec": "Spec",
    "placeopt.model.building": "build_problem",
    "placeopt.model.layout": "Layout build_layout",
    "placeopt.model.memory": "fits",
    "placeopt.model.metrics": "DeviceUse Metrics critical_path device_uses measure",
    "placeopt.model.objective": "evaluate",
    "placeopt.model.pipeline": "Pipeline",
    "placeopt.model.problem": "Objective Problem Term",
    "placeopt.model.schedule": "Offsets Schedule Stages Transfers lateness",
    "placeopt.model.setups": "Setups build_setups",
    "placeopt.model.shared_links": "SharedLink SharedLinks build_shared_links",
    "placeopt.model.stage_use": "StageUse stage_uses",
    "placeopt.model.tiers": "Tiers build_tiers",
    "placeopt.model.resource_use": "ResourceUse resource_uses",
    "placeopt.model.resources": "Resources build_resources",
    "placeopt.model.unavailability": "Unavailability build_unavailability",
    "placeopt.passes": "Applied Pass Reduction apply_passes",
    "placeopt.serving.changes": "Replanned ServingGain replace_serving whatif_serving",
    "placeopt.serving.cheapest": "CheapestResult cheapest_serving",
    "placeopt.serving.exporting": "export_serving",
    "placeopt.serving.files": "load_serving",
    "placeopt.serving.plan": "Replica ServingPlan",
    "placeopt.serving.plan_files": "read_replicas read_serving_plan write_replicas write_serving_plan",
    "placeopt.serving.problem": "Serving build_serving",
    "placeopt.serving.replicas": "replicated_serving",
    "placeopt.serving.result": "ReplicatedResult ServingResult",
    "placeopt.serving.solving": "solve_serving",
    "placeopt.serving.steady_state": "SteadyState simulate_serving",
    "placeopt.serving.verification": "ServingReport verify_replicas verify_serving",
    "placeopt.simulation": "PipelineRuns retime run_pipeline simulate",
    "placeopt.simulation.noise": "NoisyRuns simulate_noisy",
    "placeopt.protocol": "ALL_METRICS Answer Clock Info Options Progress Settings Solver Termination",
    "placeopt.protocol.registry": "Setting SolverInfo solver_info solver_names=solvers",
    "placeopt.orchestration.consolidation": "Consolidation Pieces consolidate",
    "placeopt.orchestration.jobs": "Job start",
    "placeopt.orchestration.modelling.builder": "Model",
    "placeopt.orchestration.pipeline": "solve",
    "placeopt.orchestration.rechecking": "check_certificate",
    "placeopt.orchestration.result": "Result WallTime",
    "placeopt.studies.comparison.matrix": "compare",
    "placeopt.studies.comparison.records": "Record",
    "placeopt.studies.comparison.result": "Comparison",
    "placeopt.studies.explanation": "Explanation explain",
    "placeopt.studies.losses": "Losses losses",
    "placeopt.studies.pareto": "Pareto pareto",
    "placeopt.studies.replacement": "Replacement replace",
    "placeopt.studies.sensitivity": "WhatIf whatif",
    "placeopt.verifier.certificates": "Checked Trusted",
    "placeopt.verifier": "Report Rule Violation verify",
    "placeopt.views.page": "write_report",
    "placeopt.views.traces": "write_trace",
}
"""The public names of each module; one that is public under another name stands as `name=public`."""

_HOME = {
    entry.rpartition("=")[2]: (module, entry.partition("=")[0])
    for module, names in _NAMES.items()
    for entry in names.split()
}

__all__ = sorted(_HOME)


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "__version__":
            return import_module("placeopt.protocol.remote").own_version()
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _HOME[name]
        return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
