"""The option of the commands on this machine: the folder in which they keep their data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fleetgauge_core.runtime.options import PathParam

Command = TypeVar("Command", bound=Callable[..., Any])


def directory_option(name: str, help: str) -> Callable[[Command], Command]:
    """Return the option ``--dir`` (``directory: Path``), by default a folder of the user's state."""

    def find_state_folder() -> Path:
        import platformdirs

        return platformdirs.user_state_path("fleetgauge") / name

    return click.option(
        "--dir",
        "directory",
        type=PathParam(file_okay=False),
        default=find_state_folder,
        show_default="the user's state folder",
        help=help,
    )
