"""Makes the gallery from its scripts: runs docs/examples/*.py and writes their pages, their pictures and the index.

    python docs/_pages/example_pages.py [NAME ...]

A script is the only source of its page. Its docstring is the title and the introduction. A line `# %%` starts a text in
Markdown, which is the comment lines that follow. All other lines are code, shown with the output that they print. The
code that draws a picture with matplotlib is not shown.
The picture is the file NAME.png that the script writes into the current folder.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "examples"
PICTURES = ROOT / "docs" / "images" / "examples"
EXAMPLES = (
    "transformer",
    "edge_pipeline",
    "workflow",
    "heuristic_gaps",
    "own_solver",
    "embedding",
    "lost_device",
    "infeasible",
    "robustness",
    "what_if",
    "language_model",
    "tensor_parallel",
    "quantisation",
    "four_stages",
    "serving",
    "microcontroller",
)
"""The examples in the order of the index; each is a script of that name."""
_MARK = "\x1e"  # the ASCII record separator, between the outputs of two blocks of code
_INDEX = """# Examples

Each of these worked examples is one script. The pictures need matplotlib (`pip install 'placeopt[plots]'`), and the
script about your own solver needs a checkout of the repository.

"""


@dataclass(frozen=True)
class Block:
    """A text in Markdown, or code."""

    is_code: bool
    text: str


@dataclass(frozen=True)
class Script:
    """A script of the gallery.

    Attributes
    ----------
    title
        First line of the docstring, without its full stop.
    introduction
        The rest of the docstring.
    blocks
        Texts and code that follow, in order.
    """

    name: str
    title: str
    introduction: str
    blocks: tuple[Block, ...]

    @property
    def question(self) -> str:
        """The first paragraph of the introduction in one line."""
        return " ".join(self.introduction.split("\n\n")[0].split())


def read_script(name: str) -> Script:
    """Split a script into its introduction, its texts and its code."""
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    module = ast.parse(source)
    title, _, introduction = (ast.get_docstring(module) or "").partition("\n\n")
    lines = source.splitlines()[module.body[0].end_lineno or 0 :]
    kinds: list[bool] = []
    for line in lines:
        is_text = line.startswith("#") and (line == "# %%" or (bool(kinds) and not kinds[-1]))
        kinds.append(not is_text)
    blocks = []
    for is_code, group in groupby(zip(kinds, lines, strict=True), key=lambda pair: pair[0]):
        found = [line for _, line in group]
        if not is_code:
            found = [line.removeprefix("#").removeprefix(" ") for line in found if line != "# %%"]
        if text := "\n".join(found).strip("\n"):
            blocks.append(Block(is_code, text))
    return Script(name, title.removesuffix("."), introduction, tuple(blocks))


def run_script(name: str, folder: Path) -> list[str]:
    """Run a script in a folder, where it leaves its picture, and return what each block of code prints.

    Raises
    ------
    RuntimeError
        If the script fails; the message is its traceback.
    """
    path = FOLDER / f"{name}.py"
    source = path.read_text(encoding="utf-8").replace("\n# %%\n", f"\nprint({_MARK!r})\n")
    code = f"__file__ = {str(path)!r}; exec(compile({source!r}, __file__, 'exec'))"
    environment = os.environ | {"PYTHONHASHSEED": "0", "MPLBACKEND": "agg", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, cwd=folder, env=environment)
    if done.returncode:
        raise RuntimeError(f"{path.name} ends with {done.returncode}:\n{done.stderr}")
    return done.stdout.split(f"{_MARK}\n")


def page(script: Script, outputs: list[str]) -> str:
    """Make the page of a script in Markdown, of what its blocks of code print."""
    parts = [f"<!-- made from {script.name}.py by docs/_pages/example_pages.py -->", f"# {script.title}"]
    parts += [script.introduction]
    printed = iter(outputs)
    if not script.blocks[0].is_code:  # nothing is printed before the first text
        next(printed)
    for block in script.blocks:
        if not block.is_code:
            parts.append(block.text)
            continue
        if ".savefig(" not in block.text:  # the code of a drawing is only in the script
            parts.append(f"```python\n{block.text}\n```")
        if output := next(printed).rstrip():
            parts.append(f"```text\n{output}\n```")
    parts.append(f"The whole script: [`{script.name}.py`]({script.name}.py)")
    return "\n\n".join(parts) + "\n"


def index(scripts: list[Script]) -> str:
    """Make the index: a table with two examples in each row, the picture above the title and the question."""
    cells = []
    for each in scripts:
        link, picture = f"]({each.name}.md)", f"![](../images/examples/{each.name}.png)"  # its title is below it
        cells.append(f"[{picture}{link}<br>**[{each.title}{link}**<br>{each.question}".replace("|", "\\|"))
    rows = [" | ".join(cells[k : k + 2]) for k in range(0, len(cells), 2)]
    return _INDEX + "\n".join(["| | |", "|---|---|", *(f"| {row} |" for row in rows)]) + "\n"


def main(names: list[str]) -> None:
    """Write the pages and pictures of some examples, by default of all, and the index."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in names or EXAMPLES:
        with tempfile.TemporaryDirectory() as folder:
            outputs = run_script(name, Path(folder))
            shutil.copy(Path(folder) / f"{name}.png", PICTURES)
        (FOLDER / f"{name}.md").write_text(page(read_script(name), outputs), encoding="utf-8")
    (FOLDER / "index.md").write_text(index([read_script(name) for name in EXAMPLES]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
