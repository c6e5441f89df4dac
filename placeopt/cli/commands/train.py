"""placeopt train: train the policy of a learned search."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import AsJson, input_argument, input_option, output_option
from placeopt.cli.output import print_json, print_notes, stderr_console, stdout_console
from placeopt.cli.progress import training_bar
from placeopt.cli.streams import tolerate_lost_stdout

if TYPE_CHECKING:
    from placeopt.learning.training.folder import Training
    from placeopt.learning.training.weights import Header


def train(
    out: Annotated[Path, output_option("--out", "-o", metavar="FOLDER", help="The folder of the training.")],
    problems: Annotated[
        list[Path] | None, input_argument("PROBLEM", "Problem files (YAML or JSON) to train on, or folders of them.")
    ] = None,
    data_set: Annotated[
        str | None,
        Option(
            "--data-set",
            "-d",
            metavar="NAME",
            help="Train on the training problems of this set, such as giph-multiple.",
        ),
    ] = None,
    evaluate_on: Annotated[
        list[Path] | None,
        input_option(
            "--evaluate-on",
            help="A problem file, or a folder, to evaluate on; may be repeated. The best weights are chosen on these "
            "problems. Default: those of the data set, or the training problems.",
        ),
    ] = None,
    variant: Annotated[str | None, Option(help="giph (the default), giph-3, giph-5, giph-ne, placeto, ...")] = None,
    episodes: Annotated[int | None, Option("--episodes", "-n", help="Number of episodes; by default 200.")] = None,
    batch: Annotated[
        int | None, Option("--batch", "-b", help="Episodes for each update of the weights; by default 1.")
    ] = None,
    peers: Annotated[
        int | None,
        Option(help="Episodes of an update that share a problem and a start; divides --batch; by default 1."),
    ] = None,
    steps: Annotated[float | None, Option(help="Moves of an episode for each task; by default 2.")] = None,
    gamma: Annotated[float | None, Option(help="Discount factor; by default 0.97.")] = None,
    rate: Annotated[float | None, Option(help="Learning rate of Adam; by default 0.01.")] = None,
    noise: Annotated[float | None, Option(help="Noise of durations and transfer times, a share; by default 0.")] = None,
    objective: Annotated[str | None, Option(help="makespan (the default), total_cost, energy, ...")] = None,
    every: Annotated[int | None, Option(help="Episodes between two evaluations; by default 5.")] = None,
    cases: Annotated[int | None, Option(help="Problems of an evaluation, at most; by default 20.")] = None,
    seed: Annotated[int | None, Option(help="Seed of all random numbers; by default 0.")] = None,
    potential: Annotated[
        str | None,
        Option(help="The start-time potential among the features: paper, released or none; by default paper."),
    ] = None,
    faults: Annotated[
        list[str] | None,
        Option("--fault", hidden=True, help="Reproduce a fault of GiPH's released code; may be repeated."),
    ] = None,
    device: Annotated[str, Option(help="Device of PyTorch: cpu, cuda, or auto, a GPU if there is one.")] = "auto",
    resume: Annotated[
        bool, Option("--resume", help="Go on with the training in the folder; options default to its own.")
    ] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show no progress.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train the policy of a learned search, GiPH or one of its variants, for the solver giph."""
    from placeopt.bridges.extras import require

    for library in ("torch", "safetensors"):
        require(library, "torch", "learned policies")
    from placeopt.learning.training.folder import SETTINGS as PARAMETERS
    from placeopt.learning.training.folder import Recipe, Training, check_new, resumed_recipe, torch_device

    given: dict[str, Any] = {"episodes": episodes, "steps": steps, "batch": batch, "peers": peers, "gamma": gamma}
    given |= {"rate": rate, "noise": noise, "every": every, "cases": cases, "seed": seed}
    given |= {"data_set": data_set, "variant": variant, "potential": potential, "objective": objective}
    given |= {"problems": _texts(problems), "evaluate_on": _texts(evaluate_on)}
    given["faults"] = tuple(sorted(set(faults))) if faults else None
    given = {name: value for name, value in given.items() if value is not None}
    if resume:
        recipe = resumed_recipe(out, given)
    else:
        check_new(out)
        own = {name: value for name, value in given.items() if name not in PARAMETERS}
        recipe = Recipe(**own).changed(given)
    on = torch_device(device)
    tolerate_lost_stdout()
    messages = stderr_console()
    training = Training(out, recipe, on, resume=resume)
    if training.note:
        print_notes(training.note)
    with on_interrupt() as stop:
        total = recipe.settings.episodes
        with training_bar(messages, training.resumed, total, hidden=quiet) as show:
            header = training.run(show, stop.is_set)
        if header is None:
            print_notes("stopped before the first evaluation; nothing is written")
            raise typer.Exit(stop.code)
        drawn = training.draw()
        done = training.trainer.progress.episode
        if as_json:
            print_json(_data(training, header, done))
        else:
            _print(training, header, done)
        if drawn is None:
            print_notes("no picture of the curve: it needs matplotlib: pip install 'placeopt[plots]'")
        if done < total:
            again = f"placeopt train --out {quote(str(out))} --resume"
            print_notes(f"stopped after {done:,} of {total:,} episodes; `{again}` goes on")
    raise typer.Exit(stop.code if stop.is_set() else 0)


def _texts(paths: list[Path] | None) -> tuple[str, ...] | None:
    return tuple(map(str, paths)) if paths else None


def _data(training: Training, header: Header, done: int) -> dict[str, Any]:
    """Return the outcome as plain data."""
    curve = training.trainer.progress.curve
    return {
        "folder": str(training.folder),
        "episodes": done,
        "best": {"episode": header.episode, "ratio": header.ratio},
        "curve": [{"episode": point.episode, "ratio": point.ratio} for point in curve],
        "command": header.command,
    }


def _print(training: Training, header: Header, done: int) -> None:
    """Print the outcome."""
    from placeopt.errors import counted
    from placeopt.learning.training.folder import POLICY

    trainer = training.trainer
    first = trainer.progress.curve[0].ratio
    before = f", {training.resumed:,} of them before" if training.resumed else ""
    facts = [
        (
            "trained",
            f"{header.variant}, {counted(done, 'episode')}{before}, on {counted(len(trainer.train_set), 'problem')}",
        ),
        ("ratio", f"{header.ratio:.4f} after {counted(header.episode, 'episode')}, {first:.4f} at first"),
        ("use", f"placeopt solve PROBLEM --solver giph --set weights={quote(str(training.folder / POLICY))}"),
    ]
    for label, text in facts:
        stdout_console().print(f"{label:<8} {text}", soft_wrap=True, markup=False)
