"""Plans of serving problems for runtimes, as far as each can express them.

- `helix`: the layers of each node, as Helix reads its own solutions (Mei et al., ASPLOS 2025, artifact); it finds its
  flow itself.
- `petals`: a command for each node; Petals routes tokens itself, and allows intervals that overlap.
- `vllm`, `llama.cpp`: a command for each chain of nodes. Their stages neither overlap nor have replicas, so a plan can
  be written only if every token takes one of several chains without a common node. vLLM reads the number of layers of
  each stage from VLLM_PP_LAYER_PARTITION; llama.cpp counts the output as a layer of the last device (`-ts`), and
  divides its context (`-c`) among the requests.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

import numpy as np

from placeopt.errors import UsageError, alternatives
from placeopt.serving.plan import COORDINATOR, Replicas, ServingPlan, check_plan
from placeopt.serving.problem import SECOND, TOKEN, Serving, check_serving

FIRST_NODE = 2
"""Number of the first node in a solution of Helix."""


def export_serving(problem: Serving, plan: ServingPlan, to: str) -> str:
    """Return the text of a plan in a format: helix, llama.cpp, petals or vllm.

    Raises
    ------
    UsageError
        If the format is unknown, or cannot express the plan.
    """
    check_serving("export_serving", problem)
    check_plan("export_serving", plan)
    if to not in FORMATS:
        raise UsageError(f"unknown format {to} of a serving plan{alternatives(to, FORMATS, 20)}")
    if problem.prefill_layers:
        why = "placeopt writes no transfer of the KV cache" if to == "vllm" else "there are no nodes for prefill alone"
        raise UsageError(
            f"--to {to}: prefill is separate in the plan, but {why} in this format; expected prefill: mixed"
        )
    return FORMATS[to](problem, plan)


def export_replicas(problem: Serving, replicas: Replicas, to: str) -> str:
    """The same for each of several replicas, one after the other.

    Raises a UsageError if the format is unknown, or cannot express the plans.
    """
    if len(replicas) > 1 and to == "helix":
        raise UsageError("--to helix: a solution has one replica")
    texts = [export_serving(problem.part(nodes), plan, to) for nodes, plan in replicas]
    if len(texts) == 1:
        return texts[0]
    # Servers of Petals with the same peers would send tokens to other replicas.
    return "".join(text.replace(" PEERS\n", f" PEERS{number}\n") for number, text in enumerate(texts))


def _helix(problem: Serving, plan: ServingPlan) -> str:
    lines = ["[Settings]", f"offset={FIRST_NODE}", "", "[Solution]"]
    for n in range(problem.n_nodes):
        layers = list(range(int(plan.begin[n]), int(plan.end[n])))
        lines.append(f"compute_node_{n + FIRST_NODE}={layers}")
    return "\n".join(lines) + "\n"


def _petals(problem: Serving, plan: ServingPlan) -> str:
    lines = []
    for n in np.flatnonzero(plan.end > plan.begin).tolist():
        lines.append(f"# {problem.node_names[n]}")
        blocks, degree = f"{plan.begin[n]}:{plan.end[n]}", _degree(problem, n)
        devices = "".join(f" cuda:{g}" for g in range(degree))
        shared = f" --tensor_parallel_devices{devices}" if degree > 1 else ""
        lines.append(f"python -m petals.cli.run_server MODEL --block_indices {blocks}{shared} --initial_peers PEERS")
    return "\n".join(lines) + "\n"


def _vllm(problem: Serving, plan: ServingPlan) -> str:
    lines = []
    for chain, rate in _chains(problem, plan, "vllm"):
        lines += _described(problem, plan, chain, rate)
        partition = ",".join(str(plan.end[n] - plan.begin[n]) for n in chain)
        degrees = sorted({_degree(problem, n) for n in chain})
        if len(degrees) > 1:
            one, other = (next(n for n in chain if _degree(problem, n) == d) for d in degrees[:2])
            names = f"{problem.node_names[one]} is {degrees[0]} GPUs and {problem.node_names[other]} is {degrees[1]}"
            raise UsageError(f"--to vllm: {names}, but all stages share layers among the same number of GPUs")
        size = f"--pipeline-parallel-size {len(chain)}"
        if degrees[0] > 1:
            size = f"--tensor-parallel-size {degrees[0]} {size}"
        hosts = " --distributed-executor-backend ray" if len(chain) > 1 else ""
        requests = f" --max-num-seqs {_requests(plan, rate)}" if plan.groups else ""
        context = "" if problem.context is None else f" --max-model-len {problem.context}"
        lines.append(f"VLLM_PP_LAYER_PARTITION={partition} vllm serve MODEL {size}{hosts}{context}{requests}")
    return "\n".join(lines) + "\n"


def _llama_cpp(problem: Serving, plan: ServingPlan) -> str:
    lines = []
    for chain, rate in _chains(problem, plan, "llama.cpp"):
        if several := [n for n in chain if _degree(problem, n) > 1]:
            name = problem.node_names[several[0]]
            raise UsageError(f"--to llama.cpp: {name} is several GPUs that share layers, but a server is one GPU")
        lines += _described(problem, plan, chain, rate)
        counts = [int(plan.end[n] - plan.begin[n]) for n in chain]
        counts[-1] += 1  # the output
        hosts = ",".join(f"{problem.node_names[n]}:50052" for n in chain)
        split = f" --split-mode layer -ts {','.join(map(str, counts))}" if len(chain) > 1 else ""
        requests = ""
        if plan.groups:
            number = _requests(plan, rate)
            context = "" if problem.context is None else f" -c {number * problem.context}"
            requests = f"{context} --parallel {number}"
        if plan.groups > 1:
            lines += [
                f"# The plan has {plan.groups} groups of requests, so that several nodes compute at the same time.",
                "# llama.cpp computes one group at a time: expect fewer tokens/s than stated above.",
            ]
        lines.append(f"llama-server --model MODEL --rpc {shlex.quote(hosts)} -ngl {sum(counts)}{split}{requests}")
    return "\n".join(lines) + "\n"


def _degree(problem: Serving, n: int) -> int:
    """Number of GPUs that share each layer in a node."""
    return problem.degree[int(problem.kind[n])]


def _requests(plan: ServingPlan, rate: int) -> int:
    """Requests in flight in a chain."""
    return -(-plan.token_time * rate // (TOKEN * SECOND))


def _described(problem: Serving, plan: ServingPlan, chain: list[int], rate: int) -> list[str]:
    held = ", ".join(f"{problem.node_names[n]} layers {plan.begin[n]} to {plan.end[n] - 1}" for n in chain)
    return [f"# {rate / TOKEN:,.1f} tokens/s: {held}"]


def _chains(problem: Serving, plan: ServingPlan, to: str) -> list[tuple[list[int], int]]:
    """The chains of a plan and their rates; a UsageError if a token has a choice."""
    after: dict[int, int] = {}
    starts: list[tuple[int, int]] = []
    received: set[int] = set()
    for (u, w), rate in zip(plan.edges.tolist(), plan.flow.tolist(), strict=True):
        shared = u in after or (w != COORDINATOR and w in received)
        overlapping = u != COORDINATOR and w != COORDINATOR and plan.begin[w] != plan.end[u]
        if shared or overlapping:
            name = problem.node_names[u if u in after else w]
            why = "begins before the last layer of the node before it" if not shared else "has several neighbours"
            raise UsageError(f"--to {to}: {name} {why}, but its stages form chains; petals and helix can express it")
        received.add(w)
        if u == COORDINATOR:
            starts.append((w, rate))
        else:
            after[u] = w
    found = []
    for first, rate in starts:
        chain = [first]
        while after[chain[-1]] != COORDINATOR:
            chain.append(after[chain[-1]])
        found.append((chain, rate))
    return found


FORMATS: dict[str, Callable[[Serving, ServingPlan], str]] = {
    "helix": _helix, "llama.cpp": _llama_cpp, "petals": _petals, "vllm": _vllm
}  # fmt: skip
