"""A page as a PDF, printed by the machine's Chromium.

PrintError    there is no Chromium, or it did not print
"""

import os
import re
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

#: As distributions and vendors call it.
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Asks nobody anything, and keeps nothing.
QUIETLY = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_WITHIN_S = 120


class PrintError(Exception):
    """Why there is no PDF, and what would help."""


def pdf(html: str, dated: datetime) -> bytes:
    """The same page gives the same bytes: ``dated`` stands for the moment of printing."""
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise PrintError("no Chromium or Chrome is on this machine's PATH; take --format html and print it")
    with tempfile.TemporaryDirectory(prefix="fleetgauge-pdf-", ignore_cleanup_errors=True) as folder:
        page, printed = Path(folder, "review.html"), Path(folder, "review.pdf")
        page.write_text(html, encoding="utf-8")
        # Chromium's sandbox does not work for root; the page holds no script to fear.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        own = [
            f"--user-data-dir={folder}/profile",
            "--no-pdf-header-footer",
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        try:
            done = subprocess.run(
                [browser, *QUIETLY, *sandbox, *own], capture_output=True, timeout=_WITHIN_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise PrintError(f"{browser} did not print within {_WITHIN_S} s; take --format html") from error
        if not printed.exists():
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise PrintError(f"{browser} printed nothing ({said or done.returncode}); take --format html")
        return _dated(printed.read_bytes(), dated)


def _dated(document: bytes, at: datetime) -> bytes:
    """As long as before, for a PDF's table of contents counts bytes."""
    stamp = at.astimezone(UTC).strftime("D:%Y%m%d%H%M%S+00'00'").encode()
    return re.sub(rb"D:\d{14}\+00'00'", stamp, document)
