"""A WSGI application on a port of its own, served by threads of this process."""

import threading
from typing import Any

from waitress import wasyncore
from waitress.server import create_server

from fleetgauge_dashboards.app import THREADS
from tests.ports import free_port


class Serving:
    """Answers from when it is made until it is closed."""

    def __init__(self, application: Any) -> None:
        self._sockets: dict[int, Any] = {}
        self._server = create_server(
            application, map=self._sockets, host="127.0.0.1", port=free_port(), threads=THREADS
        )
        self.url = f"http://127.0.0.1:{self._server.effective_port}"
        self._thread = threading.Thread(target=self._server.run, name="serving", daemon=True)
        self._thread.start()

    def close(self) -> None:
        # Its own thread closes them: from here, descriptors would vanish under its select.
        self._server.trigger.pull_trigger(lambda: wasyncore.close_all(self._sockets))
        self._thread.join(5)
        self._server.task_dispatcher.shutdown()
