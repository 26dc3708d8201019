"""Making the environment: what goes wrong is one line, and the next run goes on."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOBODY = "http://127.0.0.1:9/simple"


def made(folder: Path, python: str = sys.executable, **environ: str) -> "subprocess.CompletedProcess[str]":
    """The script's end; in an environment that reaches no index unless told so."""
    return subprocess.run(
        [ROOT / "infra" / "environment.sh", python, folder],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(folder.parent), **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def last_line(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 2
    assert done.stdout == ""
    return done.stderr.splitlines()[-1]


def test_without_a_python_it_says_which_to_install(tmp_path: Path) -> None:
    said = last_line(made(tmp_path / "venv", "/nowhere/python"))
    assert said == "make: no Python: install 3.11, 3.12 or 3.13, or say PYTHON=/path/to/python"


def test_a_python_of_another_version_is_named(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text('#!/bin/sh\ncase "$2" in *version_info*) exit 1 ;; *) echo 3.9.2 ;; esac\n')
    old.chmod(0o755)
    assert last_line(made(tmp_path / "venv", str(old))).startswith(f"make: {old} is Python 3.9.2: install")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be made: free space or set the rights" in last_line(made(tmp_path / "file" / "venv"))


def test_without_an_index_it_says_so_without_its_address_and_keeps_what_it_has(tmp_path: Path) -> None:
    done = made(tmp_path / "venv", PIP_INDEX_URL=NOBODY)
    said = last_line(done)
    assert "fetching uv failed" in said
    assert "check the network (PIP_INDEX_URL names another index) and the disk, then repeat" in said
    assert NOBODY not in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "venv" / "bin" / "python").exists()
