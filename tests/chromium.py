"""Starts the system's Chromium so that it connects only to the page's own server."""

from pathlib import Path

from playwright.sync_api import Browser, Playwright

from fleetgauge_dashboards.report.pdf import ISOLATION_OPTIONS

CHROMIUM = Path("/usr/bin/chromium")


def launch_chromium(playwright: Playwright) -> Browser:
    """Launch a headless Chromium that makes no background connections."""
    return playwright.chromium.launch(
        executable_path=str(CHROMIUM), args=[*ISOLATION_OPTIONS, "--no-sandbox"]
    )
