"""Take the picture of docs/service.md: `python docs/_pages/service_picture.py`, with a browser for playwright."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "support"))

from browser import chromium  # noqa: E402
from service import running  # noqa: E402


def main() -> None:
    """Compare two solvers on an example, and write what is seen then."""
    with running() as client, chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 1460})
        tab.goto(client.url)
        tab.wait_for_selector("html[data-ready]")
        tab.select_option("#example", "sensor-fusion")
        tab.locator("#verdict", has_text="sensor-fusion").wait_for()
        tab.select_option("#solver", "lns")
        tab.select_option("#second", "heft")
        tab.click("#solve")
        tab.wait_for_function(
            "() => page.runs().every(({ card }) => card.state === 'ended') && globalThis.report?.gantt"
        )
        tab.wait_for_timeout(1500)  # until the last schedule is drawn
        seen = Image.open(BytesIO(tab.screenshot()))
        seen.convert("RGB").quantize(255, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            ROOT / "docs/images/service.png", optimize=True
        )


if __name__ == "__main__":
    main()
