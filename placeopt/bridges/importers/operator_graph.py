"""Graphs of operators with costs, as models state them, and the problem documents made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeopt.bridges import hardware
from placeopt.bridges.importers.imported import Imported, too_large
from placeopt.bridges.operators import Operator, problem_document
from placeopt.errors import DocumentError, SpecError, counted, listing
from placeopt.io.compiler import compile_spec
from placeopt.model.problem import CONSOLIDATE, Problem


@dataclass(slots=True)
class OperatorGraph:
    """The operators of a model in topological order."""

    name: str
    source: str
    """Origin of the model, for readers."""
    operators: list[Operator]
    description: str = ""

    def imported(
        self,
        network: Mapping[str, Any],
        resolution: str | None,
        file: str | None,
        notes: Iterable[str] = (),
        pipeline: Mapping[str, Any] | None = None,
        addresses: str | None = None,
    ) -> Imported:
        """Return the problem document on a network, after compiling it once, and notes about guessed and free costs.

        Outputs are activations, which are freed after their last use. Therefore the memory model is `peak`, except for
        pipelines and modes, which do not support it.

        Parameters
        ----------
        network
            A mapping with `devices` and perhaps `links`.
        file
            The file of the model, for messages; None for a model in memory.
        pipeline
            The section `pipeline` for the objective `period`; None for the makespan.
        addresses
            The alignment of offsets, such as `64 B`: the problem has addresses, and tasks state which outputs may share
            bytes.

        Raises
        ------
        DocumentError
            If the costs of operators are out of range, or addresses are not possible; lists every issue.
        """
        peak = pipeline is None and not any("modes" in operator.keys for operator in self.operators)
        document = problem_document(
            {each.name: each.task() | (each.shares if addresses else {}) for each in self.operators},
            network,
            name=self.name,
            source=self.source,
            description=self.description,
            resolution=resolution,
            memory_model="peak" if peak else "sum",
            addresses=addresses,
            pipeline=pipeline,
            consolidate=f"{float(CONSOLIDATE):.0%}" if peak else None,
        )
        problem = None
        try:
            problem = compile_spec(document)
        except SpecError as error:
            # What devices lack is reported when the problem is loaded.
            ours = ("tasks", "addresses")
            wrong = [replace(issue, file=file) for issue in error.issues if issue.path and issue.path[0] in ours]
            if wrong:
                raise DocumentError(wrong) from None
        large = () if problem is None else too_large(problem)
        return Imported(document, (*large, *notes, *self._guesses(problem), *_free_starts(network)))

    def _guesses(self, problem: Problem | None) -> Iterator[str]:
        """State which operators were guessed, and their largest share of the time on a device if it is known."""
        guessed = np.array([operator.guessed for operator in self.operators], dtype=np.bool_)
        if not guessed.any():
            return
        kinds = listing(list(dict.fromkeys(each.op for each in self.operators if each.guessed)))
        note = f"no rule covers {counted(int(guessed.sum()), 'operator')} ({kinds}): only memory traffic counts"
        if problem is not None:
            share = problem.duration[guessed].sum(axis=0) / np.maximum(problem.duration.sum(axis=0), 1)
            d = int(share.argmax())
            note += f", which takes {share[d]:.1%} of the time of all operators on {problem.device_names[d]}"
        yield note


def _free_starts(network: Mapping[str, Any]) -> Iterator[str]:
    """State which accelerators start an operator in no time, because they state no overhead."""
    devices = network.get("devices")
    entries = {key: entry or {} for key, entry in devices.items()} if isinstance(devices, Mapping) else {}
    free = [
        key
        for key, entry in entries.items()
        if isinstance(entry, Mapping)
        and not entry.get("overhead")
        and not hardware.is_cpu(hardware.Device(str(key), str(entry.get("type", key)), entry.get("like")))
    ]
    if free:
        yield (
            f"{listing(free)} {'states' if len(free) == 1 else 'state'} no `overhead`, so that a kernel starts in no "
            "time; if operators are short, state one, such as `overhead: 10 us`"
        )
