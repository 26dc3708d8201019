"""Starts the system's Chromium so that it connects only to the page's own server."""

from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Playwright

from fleetgauge_dashboards.report.pdf import ISOLATION_OPTIONS

CHROMIUM = Path("/usr/bin/chromium")
_ARGUMENTS = [*ISOLATION_OPTIONS, "--no-sandbox"]


def launch_chromium(playwright: Playwright) -> Browser:
    """Launch a headless Chromium that makes no background connections."""
    return playwright.chromium.launch(executable_path=str(CHROMIUM), args=_ARGUMENTS)


def launch_profile(playwright: Playwright, folder: Path) -> BrowserContext:
    """Launch the same Chromium with a profile on disk, where it keeps compiled scripts."""
    return playwright.chromium.launch_persistent_context(
        folder, executable_path=str(CHROMIUM), args=_ARGUMENTS
    )
