"""Speak with a fleet's runner."""

import socket
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fleetgauge_local.errors import NoFleetError, RequestError
from fleetgauge_local.folder import Folder, State, read
from fleetgauge_local.messages import Answer, Request

_requests = TypeAdapter(Request)
_answers = TypeAdapter(Answer)


def ask(folder: Folder, request: Request, timeout_s: float = 30) -> Answer:
    """The runner's answer."""
    state = read(folder.state, State)
    try:
        if state is None:
            raise ConnectionRefusedError
        answer = _answers.validate_json(_exchange(state.socket, _requests.dump_json(request), timeout_s))
    except (OSError, ValidationError) as error:
        raise NoFleetError(f"no fleet runs in {folder.root}: start it with fleetgauge fleet up") from error
    if answer.error is not None:
        raise RequestError(answer.error)
    return answer


def _exchange(path: Path, line: bytes, timeout_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(line + b"\n")
        with connection.makefile("rb") as answers:
            return answers.readline()
