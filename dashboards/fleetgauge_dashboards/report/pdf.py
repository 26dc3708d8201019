"""Print an HTML document as PDF with an installed Chromium or Chrome."""

import os
import re
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.errors import OperationalError

#: Names of the executable in distributions and vendor packages.
_EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Options for a browser that makes no network requests by itself and stores nothing.
ISOLATION_OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_TIMEOUT_S = 120


class PrintError(OperationalError):
    """The PDF could not be printed; the message names the cause and an alternative."""


def print_pdf(html: str, dated: datetime) -> bytes:
    """Return the document as PDF with ``dated`` as its creation time, so that equal input gives equal bytes.

    Raises: PrintError when there is no Chromium, or when it prints nothing within the time limit.
    """
    browser = next((path for name in _EXECUTABLES if (path := shutil.which(name))), None)
    if browser is None:
        raise PrintError("no Chromium or Chrome in PATH; use --format html and print it from a browser")
    with tempfile.TemporaryDirectory(prefix="fleetgauge-pdf-", ignore_cleanup_errors=True) as folder:
        page, printed = Path(folder, "review.html"), Path(folder, "review.pdf")
        page.write_text(html, encoding="utf-8")
        # Chromium's sandbox does not work for root; the document contains no scripts.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        print_options = [
            f"--user-data-dir={folder}/profile",
            "--no-pdf-header-footer",
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        try:
            process = subprocess.run(
                [browser, *ISOLATION_OPTIONS, *sandbox, *print_options],
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise PrintError(f"{browser} did not print within {_TIMEOUT_S} s; use --format html") from error
        if not printed.exists():
            last_line = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise PrintError(
                f"{browser} printed nothing ({last_line or process.returncode}); use --format html"
            )
        return _set_dates(printed.read_bytes(), dated)


def _set_dates(document: bytes, at: datetime) -> bytes:
    """Replace all dates in place: the length must not change, since a PDF's index holds byte offsets."""
    stamp = at.astimezone(UTC).strftime("D:%Y%m%d%H%M%S+00'00'").encode()
    return re.sub(rb"D:\d{14}\+00'00'", stamp, document)
