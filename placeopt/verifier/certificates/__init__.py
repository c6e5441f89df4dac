"""Check certificates: proofs of lower bounds, or that no schedule is feasible, written by `Result.certificate`.

A certificate is a tree of claims; `docs/certificates.md` is the description of the format, from which this checker is
written. It shares no code with solvers and bounds: it recomputes every number from the arrays of the problem, in
integers, and takes from the certificate only what to compute, such as sets, prices and cuts. Where an engine decided
(CP-SAT, HiGHS, or a bound of placeopt without a claim of its own), the claim says so: it is *trusted*, not checked. It
then states a hash of what it is about, so that another engine can decide the same
(`placeopt.orchestration.rechecking`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

from placeopt.errors import CertificateError, counted
from placeopt.model.problem import Metric, Objective, Problem
from placeopt.verifier.certificates.leaves import METRICS, interval
from placeopt.verifier.certificates.model import INFINITE, Model, block_of, model_hash, model_of
from placeopt.verifier.certificates.refutation import refuted
from placeopt.verifier.certificates.scene import BITS, Claim, Said, Scene, shown, timely, whole, within

__all__ = [
    "CLAIMS",
    "ENGINES",
    "FORMAT",
    "INFEASIBLE",
    "OTHER",
    "BlockPath",
    "Checked",
    "Leaf",
    "Scene",
    "Trusted",
    "check_certificate",
    "check_claim",
    "exact",
    "examined",
    "model_hash",
    "model_of",
    "timely",
    "within",
]

FORMAT = 1
"""The version of the format."""

ENGINES = frozenset({
    "CP-SAT", "HiGHS", "a quick proof", "auto", "borders", "brute-force", "cheapest", "configurations", "cp-sat",
    "critical-path", "destructive", "division", "earliest", "energetic", "ideals", "intervals", "jackson",
    "lagrangian", "links", "load", "memory", "milp", "packing", "ports", "relaxation-lp", "relaxation-mip",
    "resources", "sct-lp", "series", "swapping", "transfers", "trivial", "weighted-sum",
})  # fmt: skip
"""The names of engines, solvers and bounds that trusted claims may rely on."""

OTHER = "other: "
"""What precedes the name of another engine."""

INFEASIBLE = "infeasible"
"""The bound of a problem without a feasible schedule."""


@dataclass(frozen=True, slots=True)
class Trusted:
    """A claim that is not checked.

    Attributes
    ----------
    engine
        What proved it.
    tasks
        The number of tasks that it is about.
    value, where
        What it states, and its place in the certificate.
    model
        SHA-256 of what it is about.
    confirmed
        Another solver that proved it as well; None without.
    reason
        Why it is not checked, in words; None if the certificate does not say.
    """

    engine: str
    tasks: int
    value: int | Fraction
    where: str
    model: str
    confirmed: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A trusted claim, with the metric and the model that it is about; the metric is None for a whole level."""

    trusted: Trusted
    metric: Metric | None
    model: Model


@dataclass(frozen=True, slots=True)
class Checked:
    """What a certificate proves.

    Attributes
    ----------
    bound
        The lower bound of the first level of the objective, in its own unit; None if no schedule is feasible.
    claims
        The number of claims that were checked by computing, or are trusted.
    trusted
        Those that are trusted; without any, the bound is proved by this check alone.
    rechecked
        Whether a second engine tried to decide these.
    """

    bound: int | Fraction | None
    claims: int
    trusted: tuple[Trusted, ...]
    rechecked: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing is trusted."""
        return not self.trusted

    @property
    def unchecked(self) -> bool:
        """Whether every claim is trusted."""
        return len(self.trusted) == self.claims

    @property
    def infeasible(self) -> bool:
        """Whether the certificate proves that no schedule is feasible."""
        return self.bound is None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        trusted = [{**asdict(each), "value": exact(each.value)} for each in self.trusted]
        bound = INFEASIBLE if self.bound is None else exact(self.bound)
        return {"bound": bound, "claims": self.claims, "complete": self.complete, "trusted": trusted}

    def __str__(self) -> str:
        if self.unchecked:
            return f"{self.what} trusted, not checked: {self.grounds}"
        return f"{self.what} checked{':' if self.complete else ';'} {self.grounds}"

    @property
    def what(self) -> str:
        """What it proves, in words."""
        if self.bound is None:
            return "infeasibility"
        return f"bound {self.bound:,}" if isinstance(self.bound, int) else f"bound {self.bound}"

    @property
    def grounds(self) -> str:
        """What it rests on, in words: claims that were computed, and those that rely on an engine."""
        claims, count = counted(self.claims, "claim"), len(self.trusted)
        if self.complete:
            return f"{claims}, all by computing"
        engines = " and ".join(sorted({each.engine for each in self.trusted}))
        largest = counted(max(each.tasks for each in self.trusted), "task")
        about = f"it has {largest}" if count == 1 else f"the largest has {largest}"
        of = f"{count:,} of {claims}" if count < self.claims else f"all {claims}" if count > 1 else "its only claim"
        text = f"{of} {'relies' if count == 1 else 'rely'} on {engines} ({about})"
        if not self.rechecked:
            return text
        others = sorted({each.confirmed for each in self.trusted if each.confirmed})
        sure = sum(each.confirmed is not None for each in self.trusted)
        return f"{text}; {sure:,} confirmed by {' and '.join(others) or 'a second engine'}, {count - sure:,} undecided"


def check_certificate(problem: Problem, certificate: Any) -> Checked:
    """Check a certificate, a document, and return what it proves; see `examined`."""
    return examined(problem, certificate)[0]


def examined(problem: Problem, certificate: Any) -> tuple[Checked, tuple[Leaf, ...]]:
    """Check a certificate, a document, and return what it proves, and the claims that it trusts.

    Raises
    ------
    CertificateError
        If a claim does not prove its value, or the certificate is of another problem or format.
    """
    try:
        bound, check = _checked(problem, certificate)
    except RecursionError:
        raise CertificateError("certificate: its claims are nested too deeply") from None
    return Checked(bound, check.claims, tuple(leaf.trusted for leaf in check.leaves)), tuple(check.leaves)


def _checked(problem: Problem, document: Any) -> tuple[int | Fraction | None, _Check]:
    """Check a document, and return the bound; None for infeasibility."""
    if not isinstance(document, Mapping) or document.get("placeopt_certificate") != FORMAT:
        raise CertificateError(f"certificate: expected `placeopt_certificate: {FORMAT}` at its top")
    if document.get("problem") != problem.fingerprint():
        raise CertificateError(
            f"certificate: it is about the problem with fingerprint {shown(document.get('problem'))}, not about "
            f"this one, {problem.fingerprint()}"
        )
    level = str(Objective((problem.objective.levels[0],)))
    if document.get("objective") != level:
        raise CertificateError(
            f"certificate.objective is {shown(document.get('objective'))}; the problem minimises {level}"
        )
    check = _Check(problem.fingerprint())
    if document.get("bound") == INFEASIBLE:
        scene, end = timely(problem)
        ticks = check.metric(scene, "makespan", document.get("proof"), "proof")
        if ticks <= end:
            raise CertificateError(
                f"certificate.proof is of a makespan of {ticks:,}; expected more than {end:,}, by which schedules end"
            )
        return None, check
    bound = _value(document.get("bound"), "certificate.bound")
    found = check.level(problem, document.get("proof"), "proof")
    if found < bound:
        raise CertificateError(f"certificate.bound is {bound}, but its proof is of {found} only")
    return bound, check


def check_claim(scene: Scene, metric: Metric, claim: Claim) -> int:
    """Check a claim about a metric, and return what it proves.

    Raises
    ------
    CertificateError
        If that is less than it states.
    """
    return _Check().metric(scene, metric, claim, "claim")


def exact(value: int | Fraction) -> int | str:
    """An exact number for JSON."""
    return value if isinstance(value, int) else str(value)


def _value(value: object, where: str) -> int | Fraction:
    """An exact number: an integer, or a text such as 3/2."""
    found: int | Fraction | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        found = value
    elif isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,400}(/0*[1-9][0-9]{0,399})?", value):
        found = Fraction(value)
    if found is None or abs(found.numerator).bit_length() > 2 * BITS:
        raise CertificateError(f"{where} is {shown(value)}; expected a whole number, or a fraction such as '3/2'")
    return found


@dataclass(slots=True)
class _Check:
    """The check of one certificate."""

    fingerprint: str | None = None  # of the problem; without it, trusted claims need no hash
    claims: int = 0
    plain: Scene | None = None  # the whole problem without deadlines
    leaves: list[Leaf] = field(default_factory=list)

    def level(self, problem: Problem, claim: object, where: str) -> int | Fraction:
        """Check a claim about the first level of the objective."""
        claim, kind = _claim(claim, where)
        if kind == "engine":
            return self._trust(claim, where, model_of(problem), None)
        if kind != "terms":
            raise CertificateError(f"{where}.claim is {kind!r}; expected terms or engine")
        terms, stated = problem.objective.levels[0], claim.get("terms")
        if not isinstance(stated, list) or len(stated) != len(terms):
            raise CertificateError(
                f"{where}.terms: expected a list of {counted(len(terms), 'claim')}, one for each metric"
            )
        scene, total = Scene(model_of(problem)), Fraction(0)
        for i, (term, part) in enumerate(zip(terms, stated, strict=True)):
            total += Fraction(term.weight) * self.metric(scene, term.metric, part, f"{where}.terms[{i}]")
        return int(total) if total.denominator == 1 else total

    def metric(self, scene: Scene, metric: Metric, claim: object, where: str) -> int:
        """Check a claim about a metric, and return its value."""
        claim, kind = _claim(claim, where)
        value = whole(claim.get("value"), f"{where}.value")
        if kind == "nothing":
            self.claims += 1
            found = 0
        elif kind == "largest":
            parts = _list(claim, "of", where)
            found = max(
                (self.metric(scene, metric, part, f"{where}.of[{i}]") for i, part in enumerate(parts)), default=0
            )
        elif kind == "engine":
            self._trust(claim, where, scene.model, metric)
            return value
        elif metric == "makespan" and kind in _STEPS:
            found = _STEPS[kind](self, scene, claim, where)
        elif kind in METRICS[metric]:
            self.claims += 1
            found = METRICS[metric][kind](Said(scene, claim, where)) if scene.model.possible else INFINITE
        else:
            raise CertificateError(f"{where}.claim is {kind!r}, which is not a claim about {metric}")
        if found < value:
            raise CertificateError(f"{where}: the claim {kind} states {value:,}, but it proves {max(found, 0):,} only")
        return found

    def _trust(self, claim: Claim, where: str, model: Model, metric: Metric | None) -> int | Fraction:
        value, reason = _value(claim.get("value"), f"{where}.value"), claim.get("reason")
        engine = _text(claim.get("engine"), 80, f"{where}.engine", "the name of what proved the claim")
        if engine not in ENGINES and not engine.startswith(OTHER):
            raise CertificateError(
                f"{where}.engine is {shown(engine)}, which the format does not list; expected a listed name, such as "
                f"'CP-SAT', or '{OTHER}NAME' for an engine of another package"
            )
        reason = None if reason is None else _text(reason, 400, f"{where}.reason", "why the claim is not checked")
        about = metric or str(Objective((model.problem.objective.levels[0],)))
        stated, found = claim.get("model"), ""
        if self.fingerprint is not None:
            found = model_hash(model, self.fingerprint, about, exact(value))
            if stated != found:
                raise CertificateError(f"{where}.model is {shown(stated)}; the hash of its model is {found}")
        self.claims += 1
        self.leaves.append(Leaf(Trusted(engine, model.n, value, where, found, None, reason), metric, model))
        return value

    def interval(self, scene: Scene, claim: Claim, where: str) -> int:
        """Work in an interval, beyond another claim."""
        least = self.metric(scene, "makespan", claim.get("from"), f"{where}.from")
        self.claims += 1
        return interval(Said(scene, claim, where), least) if scene.model.possible else INFINITE

    def refutation(self, scene: Scene, claim: Claim, where: str) -> int:
        """A tree of cases, none of which has a schedule below the value."""
        value = whole(claim.get("value"), f"{where}.value")
        self.claims += 1
        refuted(scene.model, value, claim.get("proof"), where)
        return value

    def due(self, scene: Scene, claim: Claim, where: str) -> int:
        """A claim about schedules that end before the value, by their deadlines."""
        value = whole(claim.get("value"), f"{where}.value")
        if scene.model.cuts[0] is not None or 2 * value > INFINITE:
            raise CertificateError(f"{where}: deadlines count from tick 0, not from the end of a cut; or a huge value")
        found = self.metric(within(scene.model, value - 1), "makespan", claim.get("proof"), f"{where}.proof")
        return value if found >= value else 0

    def limit(self, scene: Scene, claim: Claim, where: str) -> int:
        """A claim that a metric exceeds its limit."""
        problem, name = scene.model.problem, claim.get("metric")
        limited = next(((each, most) for each, most in problem.limits if each == name), None)
        if limited is None:
            raise CertificateError(f"{where}.metric is {shown(name)}; expected a metric that the problem limits")
        metric, most = limited
        if self.plain is None:  # deadlines are no part of a metric
            self.plain = Scene(model_of(problem))
        return INFINITE if self.metric(self.plain, metric, claim.get("proof"), f"{where}.proof") > most else 0

    def series(self, scene: Scene, claim: Claim, where: str) -> int:
        """A shortest path over the devices of tasks that cut the graph; its arcs are claims about blocks."""
        series = BlockPath(scene, claim, where)
        arcs = _list(claim, "arcs", where)
        proved: dict[_Arc, int] = {}
        for i, arc in enumerate(arcs):
            at = f"{where}.arcs[{i}]"
            if not isinstance(arc, dict):
                raise CertificateError(f"{at} is not an object")
            ends = series.arc(arc, at)
            key = series.key(*ends)
            value = self.metric(series.scene(*ends), "makespan", arc.get("proof"), f"{at}.proof")
            proved[key] = max(value, proved.get(key, 0))
        return series.shortest(proved)


_STEPS = {
    "due": _Check.due, "limit": _Check.limit, "series": _Check.series, "interval": _Check.interval,
    "refutation": _Check.refutation,
}  # fmt: skip
"""Claims about the makespan that are made of other claims."""

CLAIMS = frozenset({"nothing", "largest", "engine", "terms", *_STEPS}.union(*METRICS.values()))
"""The kinds of claims."""

_Arc = tuple[int, int, int, bool]
"""A block, the classes of the devices of its cuts (-1 without a cut), and whether these are one device."""


class BlockPath:
    """Blocks between tasks that cut the graph.

    Every task of a block is a descendant of its first cut and an ancestor of its last one, so that all of it lies
    between the end of one and the end of the other. The makespan is at least the sum of these times.
    """

    def __init__(self, scene: Scene, claim: Claim, where: str) -> None:
        model = scene.model
        self.model, self.where = model, where
        self.scenes: dict[tuple[int, int, int], Scene] = {}
        self.classes = model.devices.class_of
        self.devices = {name: d for d, name in enumerate(model.problem.device_names)}
        self.cuts = [self._task(name, f"{where}.cuts") for name in _list(claim, "cuts", where)]
        self.blocks = [
            [self._task(name, f"{where}.blocks[{b}]") for name in _list(claim, "blocks", where, b)]
            for b in range(len(self.cuts) + 1)
        ]
        if len(_list(claim, "blocks", where)) != len(self.blocks) or not model.whole:
            raise CertificateError(
                f"{where}: expected a block before each cut and one after the last, of the whole problem"
            )
        if not self.cuts:
            raise CertificateError(f"{where}.cuts is empty")
        ends = [None, *self.cuts, None]
        for b, inner in enumerate(self.blocks):
            first, last = ends[b], ends[b + 1]
            for task, far, edges in ((first, last, model.outs), (last, first, model.ins)):
                if task is not None:
                    self._reaches(task, {*inner, *(() if far is None else (far,))}, edges is model.outs, b)

    def _task(self, name: object, where: str) -> int:
        if not isinstance(name, str) or name not in self.model.named:
            raise CertificateError(f"{where}: the problem has no task {name!r}")
        return self.model.named[name]

    def _reaches(self, task: int, wanted: set[int], forwards: bool, b: int) -> None:
        """Check that all wanted tasks are descendants of a task, or ancestors."""
        edges, seen, pending = self.model.outs if forwards else self.model.ins, {task}, [task]
        while pending:
            for edge in edges[pending.pop()]:
                other = edge.target if forwards else edge.source
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        missing = wanted - (seen - {task})
        if missing:
            names = self.model.problem.task_names
            relation = "a descendant" if forwards else "an ancestor"
            raise CertificateError(
                f"{self.where}.blocks[{b}]: {names[min(missing)]} is not {relation} of {names[task]}"
            )

    def arc(self, arc: Claim, where: str) -> tuple[int, int, int]:
        """The block of an arc, and the devices of its cuts, -1 for a missing cut."""
        b = whole(arc.get("block"), f"{where}.block")
        if b >= len(self.blocks):
            raise CertificateError(f"{where}.block is {b}; the last one is {len(self.blocks) - 1}")
        ends = []
        for key, missing in (("start", b == 0), ("end", b == len(self.cuts))):
            name = arc.get(key)
            if missing != (name is None) or not (missing or (isinstance(name, str) and name in self.devices)):
                raise CertificateError(f"{where}.{key} is {name!r}; expected {'nothing' if missing else 'a device'}")
            ends.append(-1 if name is None else self.devices[name])
        return b, ends[0], ends[1]

    def key(self, b: int, start: int, end: int) -> _Arc:
        a, c = (-1 if d < 0 else self.classes[d] for d in (start, end))
        return b, a, c, start == end

    def scene(self, b: int, start: int, end: int) -> Scene:
        """A block whose cuts run on these devices."""
        known = self.scenes.get((b, start, end))
        if known is None:
            first = None if b == 0 else self.cuts[b - 1]
            last = None if b == len(self.cuts) else self.cuts[b]
            pinned = {task: d for task, d in ((first, start), (last, end)) if task is not None}
            model = block_of(self.model.problem, first, self.blocks[b], last, pinned)
            known = self.scenes[b, start, end] = Scene(replace(model, begins=model.begins and self.model.begins))
        return known

    def shortest(self, proved: dict[_Arc, int]) -> int:
        """The length of a shortest path; arcs without a claim have their critical path."""
        model = self.model
        near: dict[int, int] = {-1: 0}
        for b in range(len(self.blocks)):
            reached: dict[int, int] = {}
            ends = [-1] if b == len(self.cuts) else [c for c in range(model.k) if model.allowed[self.cuts[b]][c]]
            for a, ticks in near.items():
                for c in ends:
                    for start, end in self._pairs(a, c):
                        key = self.key(b, start, end)
                        length = proved[key] if key in proved else self.default(key)
                        reached[c] = min(reached.get(c, INFINITE), ticks + length)
            near = reached
        return min(near.values(), default=INFINITE)

    def _pairs(self, a: int, c: int) -> list[tuple[int, int]]:
        """Devices of two classes: the same device, and two."""
        if a < 0 or c < 0:
            return [(-1 if a < 0 else self.model.devices.leader[a], -1 if c < 0 else self.model.devices.leader[c])]
        pair = self.model.devices.pairs[a][c]
        same = [(self.model.devices.leader[a], self.model.devices.leader[c])] if a == c else []
        return same + ([] if pair is None else [pair])

    def default(self, key: _Arc) -> int:
        """The critical path of an arc, the same for all devices of its classes."""
        b, *pair = next(each for p in self._pairs(key[1], key[2]) if self.key(*(each := (key[0], *p))) == key)
        scene = self.scene(b, *pair)
        return scene.longest if scene.model.possible else INFINITE


def _text(value: object, most: int, where: str, what: str) -> str:
    """A short text of one line."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) < most:
        raise CertificateError(f"{where} is {shown(value)}; expected {what}")
    return value


def _claim(claim: object, where: str) -> tuple[Claim, str]:
    if not isinstance(claim, dict) or not isinstance(claim.get("claim"), str):
        raise CertificateError(f"{where}: expected an object with the key `claim`")
    return claim, claim["claim"]


def _list(claim: Claim, key: str, where: str, at: int | None = None) -> list[Any]:
    found = claim.get(key)
    if isinstance(found, list) and at is not None:
        found = found[at] if at < len(found) else None
    if not isinstance(found, list):
        raise CertificateError(f"{where}.{key}{'' if at is None else f'[{at}]'}: expected a list")
    return found
