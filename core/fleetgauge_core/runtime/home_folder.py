"""Paths that begin with `~`, which no shell replaces in a file or in `--option=~/path`."""

from pathlib import Path


def expand_home(text: str) -> Path:
    """Return the path with the home folder of a user in place of a leading `~` or `~user`.

    It takes a text, because a Path does not tell `./~` from `~`.

    Raises: ValueError, with one line for the user, if there is no such folder.
    """
    path = Path(text)
    if not text.startswith("~"):
        return path
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError(
            f"{path}: there is no home folder {path.parts[0]}: write the whole path, or ./{path} if this is "
            "its name"
        ) from None
