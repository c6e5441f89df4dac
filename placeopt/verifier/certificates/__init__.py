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
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from placeopt.errors import CertificateError, counted
from placeopt.model.problem import Metric, Objective, Problem
from placeopt.verifier.certificates.claims import CLAIMS, below
from placeopt.verifier.certificates.devices import INFINITE
from placeopt.verifier.certificates.model import Model, model_hash, model_of, timely
from placeopt.verifier.certificates.refutation import refute
from placeopt.verifier.certificates.said import BITS, Said, shown

FORMAT = 1
"""The version of the format."""

ENGINES = frozenset({
    "CP-SAT", "HiGHS", "a quick proof", "auto", "borders", "brute-force", "cheapest", "chronological", "configurations",
    "cp-sat", "critical-path", "destructive", "division", "earliest", "energetic", "ideals", "intervals", "jackson",
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
        text = f"{self.bound:,}" if isinstance(self.bound, int) else f"{self.bound}"
        return "infeasibility" if self.bound is None else f"bound {text}"

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

    Raises a CertificateError if a claim does not prove its value, or the certificate is of another problem or format.
    """
    check = _Check(problem)
    try:
        bound = check.document(certificate)
    except RecursionError:
        raise CertificateError("certificate: its claims are nested too deeply") from None
    return Checked(bound, check.claims, tuple(leaf.trusted for leaf in check.leaves)), tuple(check.leaves)


def check_claim(model: Model, metric: Metric, claim: object, where: str = "claim") -> int:
    """Check a claim about a metric, and return what it proves.

    Raises a CertificateError if that is less than it states.
    """
    return _Check(model.problem).metric(model, metric, claim, where)


def exact(value: int | Fraction) -> int | str:
    """An exact number for JSON."""
    return value if isinstance(value, int) else str(value)


def _value(value: Any, where: str) -> int | Fraction:
    """An exact number: an integer, or a text such as 3/2."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,400}(/0*[1-9][0-9]{0,399})?", value):
        value = Fraction(value)
    number = isinstance(value, int | Fraction) and not isinstance(value, bool)
    if not number or max(abs(value.numerator), value.denominator).bit_length() > 2 * BITS:
        raise CertificateError(f"{where} is {shown(value)}; expected a whole number, or a fraction such as '3/2'")
    found: int | Fraction = value
    return found


@dataclass
class _Check:
    """The check of one certificate."""

    problem: Problem
    claims: int = 0
    leaves: list[Leaf] = field(default_factory=list)

    def document(self, document: Any) -> int | Fraction | None:
        """Check a document, and return the bound; None for infeasibility."""
        if not isinstance(document, Mapping):
            raise CertificateError(f"certificate is {shown(document)}; expected an object, as `solve` writes it")
        level = str(Objective((self.problem.objective.levels[0],)))
        for key, own in ("placeopt_certificate", FORMAT), ("problem", self.problem.fingerprint()), ("objective", level):
            stated = document.get(key)
            if stated != own or type(stated) is not type(own):
                raise CertificateError(
                    f"certificate.{key} is {shown(stated)}; a certificate of this problem has {own!r}"
                )
        if document.get("bound") == INFEASIBLE:
            model, end = timely(self.problem)
            ticks = self.metric(model, "makespan", document.get("proof"), "proof")
            if ticks > end:
                return None
            expected = f"expected more than {end:,}, by which schedules end"
            raise CertificateError(f"certificate.proof is of a makespan of {ticks:,}; {expected}")
        bound = _value(document.get("bound"), "certificate.bound")
        found = self.level(model_of(self.problem), document.get("proof"))
        if found < bound:
            raise CertificateError(f"certificate.bound is {bound}, but its proof is of {found} only")
        return bound

    def level(self, model: Model, claim: Any) -> int | Fraction:
        """Check a claim about the first level of the objective."""
        said, level = Said(model, claim, "proof", self.metric), model.problem.objective.levels[0]
        if said.claim["claim"] == "engine":
            return self._trust(said, None)
        if said.claim["claim"] == "refutation" and any(term.metric == "makespan" and term.weight for term in level):
            value = _value(said.claim.get("value"), f"{said.where}.value")
            refute(said, below(level, Fraction(value), self.metric))
            self.claims += 1
            return value
        if said.claim["claim"] != "terms" or len(said.items("terms")) != len(level):
            raise said.wrong("terms", f"the claim engine, or terms with {counted(len(level), 'claim')}, one by metric")
        total = Fraction(0)
        for i, (term, part) in enumerate(zip(level, said.items("terms"), strict=True)):
            total += Fraction(term.weight) * self.metric(model, term.metric, part, f"proof.terms[{i}]")
        return int(total) if total.denominator == 1 else total

    def metric(self, model: Model, metric: Metric, claim: Any, where: str) -> int:
        """Check a claim about a metric, and return what it proves."""
        said = Said(model, claim, where, self.metric)
        kind, value = said.claim["claim"], said.number("value")
        if kind == "engine":
            self._trust(said, metric)
            return value
        prove = (lambda _: 0) if kind == "nothing" else CLAIMS[metric].get(kind)
        if prove is None:
            raise CertificateError(f"{where}.claim is {shown(kind)}, which is not a claim about {metric}")
        before, found = self.claims, prove(said) if model.possible else INFINITE
        self.claims += self.claims == before  # a claim that is made of others does not count
        if found < value:
            raise CertificateError(f"{where}: the claim {kind} states {value:,}, but it proves {max(found, 0):,} only")
        return found

    def _trust(self, said: Said, metric: Metric | None) -> int | Fraction:
        value, model = _value(said.claim.get("value"), f"{said.where}.value"), said.model
        engine = said.text("engine", 80, "the name of what proved the claim")
        if engine not in ENGINES and not engine.startswith(OTHER):
            raise said.wrong("engine", f"a name that the format lists, such as 'CP-SAT', or '{OTHER}NAME'")
        reason = said.text("reason", 400, "why the claim is not checked") if said.claim.get("reason") else None
        about = metric or str(Objective((self.problem.objective.levels[0],)))
        found = model_hash(model, about, exact(value))
        if said.claim.get("model") != found:
            raise said.wrong("model", f"the hash of its model, {found}")
        self.claims += 1
        self.leaves.append(Leaf(Trusted(engine, model.n, value, said.where, found, None, reason), metric, model))
        return value
