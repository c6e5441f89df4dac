"""Write the table of solvers into the README, after the line `MARK`.

    python docs/_pages/readme.py

A test checks that the table in the README is up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from solver_pages import table

README = Path(__file__).parents[2] / "README.md"
MARK = "<!-- table of solvers, made by docs/_pages/readme.py -->"


def main() -> None:
    """Replace the first table of the section by the generated one."""
    text = README.read_text(encoding="utf-8")
    before, section, after = re.split(
        r"(^## The solvers\n.*?)(?=^## )", text, maxsplit=1, flags=re.MULTILINE | re.DOTALL
    )
    section = section.replace(f"{MARK}\n\n", "")
    section = re.sub(
        r"^\|.*?\n\n", lambda _: f"{MARK}\n\n{table('')}\n\n", section, count=1, flags=re.MULTILINE | re.DOTALL
    )
    README.write_text(before + section + after, encoding="utf-8")


if __name__ == "__main__":
    main()
