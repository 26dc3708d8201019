"""The distribution's Chromium, started so that it asks nobody but the page's own server."""

from pathlib import Path

from playwright.sync_api import Browser, Playwright

from fleetgauge_dashboards.report.pdf import QUIETLY

CHROMIUM = Path("/usr/bin/chromium")


def launched(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*QUIETLY, "--no-sandbox"])
