"""POST requests that a process takes on its health endpoints' address."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

#: The longest body that is read.
MAX_BODY_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Post:
    """A request; the names of its headers are in lower case, and its path has no query."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class PostResponse:
    """The response: a JSON object, and further headers."""

    status: HTTPStatus
    document: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


#: Answers a request, or promises to. It is called by the thread that serves all endpoints, so it must not
#: wait for anything.
PostHandler = Callable[[Post], PostResponse | Future[PostResponse]]
