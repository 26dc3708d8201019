"""How the documentation becomes a site: `make docs` builds docs/_build/html."""

from fleetgauge_core import __version__

project = "Fleetgauge"
author = "the Fleetgauge authors"
release = __version__
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"Fleetgauge {release}"
exclude_patterns = ["_build"]
# Headings get the anchors that they have on GitHub, so that a link works in both places, or in neither.
myst_heading_anchors = 4
# A page must be reachable, and every link between pages must lead somewhere: warnings are errors.
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]
