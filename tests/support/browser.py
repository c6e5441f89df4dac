"""A headless Chromium for tests of pages: the system's own, else the one that `playwright install chromium` fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class NoBrowserError(Exception):
    """There is none; says what would install one."""


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, as playwright has it."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowserError("no playwright: pip install 'placeopt[test]'") from None
    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, NAMES)), None) or playwright.chromium.executable_path
        if not Path(found).exists():
            raise NoBrowserError("no browser: apt-get install chromium, or playwright install chromium")
        # Root has no sandbox, nor have most containers; the pages are our own.
        sandbox = [] if os.environ.get("PLACEOPT_BROWSER_SANDBOX") else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=found, args=[*sandbox, "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()
