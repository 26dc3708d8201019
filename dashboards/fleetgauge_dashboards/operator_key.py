"""The key of operators without a login: where it comes from, and the link that hands it to a browser."""

import os
import re
import secrets

from fleetgauge_core.runtime.cli import InputError

#: The environment variable that sets the key; without it each start of the server has a new one.
KEY_VARIABLE = "FLEETGAUGE_OPERATOR_KEY"
#: Characters that a URL and a cookie contain as they are.
_KEY = re.compile(r"[A-Za-z0-9_-]{16,}", re.ASCII)


def generate_key() -> str:
    """Return a new random key."""
    return secrets.token_urlsafe(32)


def choose_key() -> str:
    """Return the key of the environment, or a new one.

    Raises: InputError if the environment's key is malformed.
    """
    key = os.environ.get(KEY_VARIABLE)
    if key is None:
        return generate_key()
    if not _KEY.fullmatch(key):
        raise InputError(f"{KEY_VARIABLE}: needs at least 16 characters, which are letters, digits, - and _")
    return key


def format_operator_url(url: str, key: str) -> str:
    """Return the link that makes a browser an operator's.

    ``url`` is the address of the pages with its final slash.
    """
    return f"{url}operator?key={key}"
