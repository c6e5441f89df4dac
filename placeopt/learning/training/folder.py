"""Training in a folder: what is trained on what, the files, and resumption. `placeopt train` calls this module."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

import torch

from placeopt.errors import Issue, MissingExtraError, UsageError, suggestion
from placeopt.io.files import write_whole, writing
from placeopt.learning.graphs.views import Potential
from placeopt.learning.networks.variants import FAULTS, VARIANTS, make_agent
from placeopt.learning.training.cases import Cases, digest, file_problems, numbers_of_devices, set_cases
from placeopt.learning.training.checkpoints import Source, load_checkpoint, save_checkpoint, save_policy
from placeopt.learning.training.reinforce import Progress, Trainer
from placeopt.learning.training.settings import FAULTS as TRAINING_FAULTS
from placeopt.learning.training.settings import Settings
from placeopt.learning.training.weights import Header, file_error
from placeopt.model.problem import Metric, Objective, Problem, Term
from placeopt.model.versions import version_of

POLICY, CHECKPOINT, CURVE, PICTURE = "policy.safetensors", "checkpoint.safetensors", "curve.csv", "curve.svg"
"""The files of a training."""

METRICS: tuple[Metric, ...] = tuple(metric for metric in get_args(Metric) if metric != "period")
SETTINGS = tuple(each.name for each in fields(Settings) if each.name != "faults")
"""The parameters of training."""
POTENTIALS: tuple[Potential, ...] = get_args(Potential)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is trained on what: the arguments of `placeopt train` that decide the weights."""

    data_set: str | None = None
    problems: tuple[str, ...] = ()
    """The data set, or problem files and folders, to train on."""
    evaluate_on: tuple[str, ...] = ()
    """Problem files and folders to evaluate on; by default, those of the data set, or the training problems."""
    variant: str = "giph"
    potential: str = "paper"
    faults: tuple[str, ...] = ()
    """As in `make_agent`; `faults` are those of the network, of the view and of training."""
    objective: str = "makespan"
    """The metric that searches minimise."""
    settings: Settings = field(default_factory=Settings)
    """Parameters of training, without faults."""

    def __post_init__(self) -> None:
        if (self.data_set is None) == (not self.problems):
            raise UsageError("expected either problem files or a data set to train on: PROBLEM..., or --data-set NAME")
        for name, value, known in (
            ("variant", self.variant, tuple(VARIANTS)),
            ("potential", self.potential, POTENTIALS),
            ("objective", self.objective, METRICS),
            *(("fault", fault, (*FAULTS, *TRAINING_FAULTS)) for fault in self.faults),
        ):
            if value not in known:
                raise UsageError(
                    f"unknown {name} {value}{suggestion(value, known)}; expected one of {', '.join(known)}"
                )

    def values(self) -> dict[str, Any]:
        """The arguments by name, those of `settings` among them."""
        ours = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "settings"}
        return ours | {name: getattr(self.settings, name) for name in SETTINGS}

    def changed(self, values: Mapping[str, Any]) -> Recipe:
        """The recipe with other arguments, by the names of `values`."""
        ours = {name: value for name, value in values.items() if name not in SETTINGS}
        return replace(self, **ours, settings=replace(self.settings, **{k: values[k] for k in SETTINGS if k in values}))

    def command(self, out: str = "FOLDER") -> str:
        """The command that trains the weights."""
        words = ["placeopt", "train", *self.problems]
        values, usual = self.values(), Recipe(data_set="").values()
        for name, value in values.items():
            if name != "problems" and value != usual[name] and value is not None:
                for each in value if isinstance(value, tuple) else (value,):
                    words += [_option(name), str(each)]
        return shlex.join([*words, "--out", out])


def recipe_of(header: Header) -> Recipe:
    """The recipe of a policy or a checkpoint."""
    faults = [*header.faults, *header.settings.faults]
    return Recipe(
        header.data_set,
        header.train,
        header.evaluation,
        header.variant,
        header.potential,
        tuple(sorted(faults)),
        header.objective,
        replace(header.settings, faults=frozenset()),
    )


class Training:
    """A training whose state is kept in a folder.

    Attributes
    ----------
    recipe
        What is trained on what.
    trainer
        The trainer; `trainer.progress` is its state.
    resumed
        Number of episodes before this process.
    note
        Why a resumed training may end with other weights than one without a break; empty if it cannot.
    """

    def __init__(self, folder: Path, recipe: Recipe, device: str = "cpu", *, resume: bool = False) -> None:
        """Prepare a training: new, or that of the folder's checkpoint.

        `recipe` is that of the checkpoint if the training is resumed (see `resumed_recipe`).

        Raises a DocumentError if problem files or the checkpoint are not valid, and a UsageError if the problems have
        changed since the checkpoint was written, a value is not valid, or the folder cannot be written.
        """
        self.folder, self.recipe, self.note = folder, recipe, ""
        self._written = _version(folder / CHECKPOINT) if resume else None
        train, evaluation, found = _problems(recipe)
        self._source = Source(recipe.data_set, recipe.problems, recipe.evaluate_on, found, recipe.command())
        agent = make_agent(
            recipe.variant,
            devices=_devices(recipe, train, evaluation),
            potential=cast(Potential, recipe.potential),
            faults=frozenset(fault for fault in FAULTS if fault in recipe.faults),
            seed=recipe.settings.seed,
        )
        in_training = frozenset(fault for fault in TRAINING_FAULTS if fault in recipe.faults)
        settings = replace(recipe.settings, faults=in_training)
        objective = None if recipe.objective == "makespan" else Objective(((Term(cast(Metric, recipe.objective)),),))
        self.trainer = Trainer(agent, train, evaluation, settings, objective=objective, device=device)
        if resume:
            checkpoint = load_checkpoint(folder / CHECKPOINT)
            if checkpoint.header.digest != found:
                raise UsageError(
                    f"the problems have changed since {folder / CHECKPOINT} was written; "
                    "expected the same files, or a new folder"
                )
            checkpoint.restore(self.trainer)
            self.note = _versions(checkpoint.header)
        else:
            with writing(folder):
                folder.mkdir(exist_ok=True)
        self.resumed = self.trainer.progress.episode

    def run(
        self,
        report: Callable[[Progress], bool | None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Header | None:
        """Train, as `Trainer.run`; write the files after each evaluation and at the end. Return the policy's header.

        If training is stopped before the first evaluation, there is no policy: write nothing and return None.

        Raises a UsageError if another training writes the folder, or has written it since this one was prepared.
        """
        with _locked(self.folder):
            if _version(self.folder / CHECKPOINT) != self._written:
                raise UsageError(
                    f"another training has written {self.folder / CHECKPOINT}; expected --resume to go on with it, or "
                    "another folder"
                )
            try:
                return self._run(report, should_stop)
            finally:
                self._written = _version(self.folder / CHECKPOINT)

    def _run(
        self, report: Callable[[Progress], bool | None] | None, should_stop: Callable[[], bool] | None
    ) -> Header | None:
        written = 0

        def after(progress: Progress) -> bool | None:
            nonlocal written
            if len(progress.curve) > written:
                written = len(progress.curve)
                self.save()
            return None if report is None else report(progress)

        progress = self.trainer.run(after, should_stop)
        return self.save() if progress.curve else None

    def save(self) -> Header:
        """Write checkpoint, policy and curve; each file is replaced as a whole or not at all.

        The checkpoint is first, as it is enough to go on after a full disk.
        """
        save_checkpoint(self.folder / CHECKPOINT, self.trainer, self._source)
        header = save_policy(self.folder / POLICY, self.trainer, self._source)
        with writing(self.folder / CURVE):
            write_whole(self.folder / CURVE, curve_text(self.trainer.progress))
        return header

    def draw(self) -> Path | None:
        """Write the learning curve as a picture; return its path, None without matplotlib."""
        from placeopt.views.plots import need_plots

        try:
            need_plots()
        except MissingExtraError:
            return None
        from placeopt.views.plots.curves import Curve, draw_curves

        points = tuple((point.episode, point.ratio) for point in self.trainer.progress.curve)
        draw_curves([Curve(self.recipe.variant, points)]).write(self.folder / PICTURE)
        return self.folder / PICTURE


def resumed_recipe(folder: Path, values: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a folder's checkpoint, with more episodes if `values` state them.

    Raises a DocumentError if the checkpoint is not valid, and a UsageError if there is no checkpoint, or another
    argument in `values` differs from the checkpoint's.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        raise UsageError(f"nothing to resume: {path} does not exist; expected the folder of an earlier training")
    header = load_checkpoint(path).header
    try:
        recipe = recipe_of(header)
    except UsageError as error:  # of values that only a changed file has
        raise file_error(path, [Issue(str(error), ("header",))]) from None
    before = recipe.values()
    different = [name for name in values if name != "episodes" and values[name] != before[name]]
    if different:
        texts = [
            f"{_option(name)} {_text(values[name])} (the checkpoint has {_text(before[name])})" for name in different
        ]
        raise UsageError(
            f"cannot resume {folder} with {', '.join(texts)}; expected the same options, of which only --episodes may "
            "be larger, or a new folder"
        )
    recipe = recipe.changed({name: value for name, value in values.items() if name == "episodes"})
    if recipe.settings.episodes < header.episode:
        raise UsageError(
            f"--episodes {recipe.settings.episodes} is less than the {header.episode} that {folder} has; expected at "
            "least as many"
        )
    return recipe


def check_new(folder: Path) -> None:
    """Raise a UsageError if a folder cannot hold a new training, because it has files of another one."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"cannot write {folder}: it is a file; expected a folder")
    if not folder.absolute().parent.is_dir():
        raise UsageError(f"cannot write {folder}: {folder.parent} is not a folder")
    there = [name for name in (CHECKPOINT, POLICY, CURVE, PICTURE) if (folder / name).exists()]
    if CHECKPOINT in there:
        raise UsageError(f"{folder} has a training; expected --resume to go on with it, or another folder")
    if there:
        raise UsageError(f"{folder / there[0]} exists and would be overwritten; expected another folder")


def torch_device(name: str) -> str:
    """Return PyTorch's device: `auto` is a GPU if there is one.

    Raises a UsageError if the name is unknown, or there is no such device.
    """
    known = ("auto", "cpu", "cuda")
    if name not in known:
        raise UsageError(f"unknown device {name}; expected one of {', '.join(known)}")
    there = bool(torch.cuda.is_available())
    if name == "cuda" and not there:
        raise UsageError("--device cuda: PyTorch finds no GPU; expected cpu, or auto")
    return "cuda" if there and name != "cpu" else "cpu"


def curve_text(progress: Progress) -> str:
    """Return the learning curve as CSV: episodes, ratio, and the mean return of the episodes since the last line."""
    lines, done = ["episode,ratio,mean_return"], 0
    for point in progress.curve:
        returns = progress.returns[done : point.episode]
        mean = f"{sum(returns) / len(returns):.6g}" if returns else ""
        lines.append(f"{point.episode},{point.ratio!r},{mean}")
        done = point.episode
    return "\n".join(lines) + "\n"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other trainings. Windows, and file systems without locks, have no such lock."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with writing(folder):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another training is writing {folder}; expected another folder") from None
        except OSError:  # no locks on this file system
            pass
        yield
    finally:
        os.close(descriptor)


def _version(path: Path) -> tuple[int, int] | None:
    """Return what differs between two versions of a file that is replaced as a whole; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _versions(header: Header) -> str:
    """Return a note if other versions of the libraries wrote a checkpoint."""
    now = {"placeopt": version_of() or "unknown", "torch": str(torch.__version__)}
    before = {"placeopt": header.placeopt, "torch": header.torch}
    other = [f"{name} {before[name]} (now {now[name]})" for name in now if before[name] != now[name]]
    if not other:
        return ""
    return f"the checkpoint was written with {' and '.join(other)}; the weights may differ from those without a break"


def _problems(recipe: Recipe) -> tuple[Cases | list[Problem], Cases | list[Problem], str]:
    """Return the problems to train and to evaluate on, and the hash of those in files."""
    train: Cases | list[Problem]
    evaluation: Cases | list[Problem]
    files: list[list[Problem]] = []
    if recipe.data_set is not None:
        train, evaluation = set_cases(recipe.data_set)
    else:
        files.append(file_problems(recipe.problems))
        train = evaluation = files[0]
    if recipe.evaluate_on:
        files.append(file_problems(recipe.evaluate_on))
        evaluation = files[-1]
    return train, evaluation, digest(*files) if files else ""


def _devices(recipe: Recipe, train: Cases | list[Problem], evaluation: Cases | list[Problem]) -> int:
    """Return the number of devices of all problems, which only Placeto needs."""
    if recipe.variant != "placeto":
        return 1
    found = sorted(numbers_of_devices(train) | numbers_of_devices(evaluation))
    if len(found) > 1:
        raise UsageError(
            f"placeto needs problems with the same number of devices; these have {found[0]} to {found[-1]}"
        )
    return found[0]


def _option(name: str) -> str:
    return {"problems": "PROBLEM", "faults": "--fault"}.get(name, f"--{name.replace('_', '-')}")


def _text(value: Any) -> str:
    return " ".join(value) or "none" if isinstance(value, tuple) else "none" if value is None else str(value)
