"""Send requests to a fleet's runner over its Unix socket."""

import socket
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fleetgauge_local.errors import NoFleetError, RequestError
from fleetgauge_local.fleet_folder import FleetFolder, RunnerState, read_json
from fleetgauge_local.runner_protocol import RunnerRequest, RunnerResponse

_requests = TypeAdapter(RunnerRequest)
_responses = TypeAdapter(RunnerResponse)


def call_runner(folder: FleetFolder, request: RunnerRequest, timeout_s: float = 30) -> RunnerResponse:
    """Send a request to the runner and return its response.

    Raises: NoFleetError when no runner responds; RequestError when it rejects the request.
    """
    state = read_json(folder.state, RunnerState)
    try:
        if state is None:
            raise ConnectionRefusedError
        response = _responses.validate_json(_exchange(state.socket, _requests.dump_json(request), timeout_s))
    except (OSError, ValidationError) as error:
        raise NoFleetError(f"no fleet runs in {folder.root}: start it with `fleetgauge fleet up`") from error
    if response.error is not None:
        raise RequestError(response.error)
    return response


def _exchange(path: Path, line: bytes, timeout_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(line + b"\n")
        with connection.makefile("rb") as lines:
            return lines.readline()
