"""Examples in Markdown pages: Python in fences, `placeopt ...` and `python -c` in indented blocks, and their files.

A comment `<!-- not run: why -->` before an example leaves it out, and so does a word in capitals that stands for
something (`placeopt solve PROBLEM`). A command that is to fail says so in a comment of its own: `# exits with 1`. A
fence of YAML or CSV is a file if the paragraph before it starts with its name, or says "as `name`".
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_MARK = re.compile(r"<!-- (not run|source): (.*?) -->")
_PLACEHOLDER = re.compile(r"(?<![\w./-])[A-Z]{3,}\b|\[--|\[[A-Z]|\|")
_NAMED = re.compile(r"^`([\w.-]+\.(?:yaml|csv))`|\bas `([\w.-]+\.(?:yaml|csv))`")
_EXIT = re.compile(r"#.*\bexits with (\d+)")


@dataclass(frozen=True)
class Example:
    """A piece of a page.

    Attributes
    ----------
    kind
        "python", "command", or the language of any other fence.
    text
        The code, or the command in one line.
    line
        Where it starts, from 1.
    reason
        Why it is not run; None if it is.
    source
        The file of the repository that it shows, if it shows one.
    file
        The name under which it is to be saved, if it is a file.
    """

    kind: str
    text: str
    line: int
    reason: str | None = None
    source: str | None = None
    file: str | None = None

    @property
    def arguments(self) -> list[str]:
        """The words of a command, comments left out."""
        return shlex.split(self.text, comments=True)

    @property
    def exit_code(self) -> int:
        """What a command ends with."""
        said = _EXIT.search(self.text)
        return int(said[1]) if said else 0


def examples(path: Path) -> list[Example]:
    """The examples of a page, in order."""
    lines = path.read_text(encoding="utf-8").split("\n")
    found: list[Example] = []
    marks: dict[str, str] = {}
    paragraph: list[str] = []
    k = 0
    while k < len(lines):
        line, first = lines[k], k + 1
        if mark := _MARK.fullmatch(line.strip()):
            marks[mark[1]] = mark[2]
        elif line.startswith("```"):
            end = lines.index("```", k + 1)
            named = _NAMED.search(" ".join(paragraph))
            language = line[3:].strip()
            file = (named[1] or named[2]) if named and language in ("yaml", "csv") else None
            text = "\n".join(lines[k + 1 : end]) + "\n"
            found.append(Example(language, text, first, marks.get("not run"), marks.get("source"), file))
            k, marks, paragraph = end, {}, []
        elif line.startswith("    ") and not (paragraph and paragraph[-1].startswith("-")):
            while line.endswith("\\"):
                k += 1
                line = f"{line[:-1]} {lines[k].strip()}"
            command = line.strip().removeprefix("pip install -e . && ")
            if command.startswith("placeopt "):
                reason = marks.get("not run")
                if reason is None and _PLACEHOLDER.search(command.split(" #")[0]):
                    reason = "a word in capitals stands for something"
                found.append(Example("command", command, first, reason))
            elif command.startswith("python -c "):
                found.append(Example("python", shlex.split(command)[2], first, marks.get("not run")))
        elif line.strip():
            marks = {}
        if line.strip() and not line.startswith(("    ", "```")):
            paragraph.append(line)
        elif not line.strip() and k + 1 < len(lines) and not lines[k + 1].startswith(("```", "<!--")):
            paragraph = []
        k += 1
    return found
