"""Serve a WSGI application on a free port from threads of this process."""

import logging
import threading
from typing import Any

from werkzeug.serving import make_server

from tests.ports import free_port

logging.getLogger("werkzeug").setLevel(logging.WARNING)


class Serving:
    """A server that handles requests from its creation until it is closed."""

    def __init__(self, application: Any) -> None:
        self._server = make_server("127.0.0.1", free_port(), application, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()
