"""infra/environment.sh: an error is one line, and the next run continues."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_INDEX = "http://127.0.0.1:9/simple"


def run_script(
    folder: Path, python: str = sys.executable, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """Run the script without any environment variables but ``environ``, and return its result."""
    return subprocess.run(
        [ROOT / "infra" / "environment.sh", python, folder],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(folder.parent), **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def read_error(result: "subprocess.CompletedProcess[str]") -> str:
    """Return the last line on stderr of a run that failed."""
    assert result.returncode == 2
    assert result.stdout == ""
    return result.stderr.splitlines()[-1]


def test_without_a_python_the_error_names_the_versions_to_install(tmp_path: Path) -> None:
    error = read_error(run_script(tmp_path / "venv", "/nowhere/python"))
    assert error == "make: no Python: install 3.11, 3.12 or 3.13, or set PYTHON=/path/to/python"


def test_the_error_names_a_python_of_another_version(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text('#!/bin/sh\ncase "$2" in *version_info*) exit 1 ;; *) echo 3.9.2 ;; esac\n')
    old.chmod(0o755)
    assert read_error(run_script(tmp_path / "venv", str(old))).startswith(
        f"make: {old} is Python 3.9.2: install"
    )


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be created: free space or set its permissions" in read_error(
        run_script(tmp_path / "file" / "venv")
    )


def test_an_unreachable_index_is_an_error_without_its_address_and_keeps_the_environment(
    tmp_path: Path,
) -> None:
    result = run_script(tmp_path / "venv", PIP_INDEX_URL=NO_INDEX)
    error = read_error(result)
    assert "fetching uv failed" in error
    assert "check the network (PIP_INDEX_URL sets another index) and the disk, then repeat" in error
    assert NO_INDEX not in result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "venv" / "bin" / "python").exists()
