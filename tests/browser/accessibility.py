"""Checks a page with axe for violations of accessibility rules."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def find_serious_violations(page: Page) -> list[str]:
    """Return a line with the rule and the affected elements for each serious or critical violation."""
    return [
        f"{violation['id']}: {violation['help']}: "
        + ", ".join(str(node["target"]) for node in violation["nodes"][:5])
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
