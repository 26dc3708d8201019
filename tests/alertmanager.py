"""A real Alertmanager, which notifies a webhook of the tests."""

import json
import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ports import free_port
from tests.receiver import Receiver
from tests.waiting import wait_until

PATIENCE_S = 30
NAME = "prometheus-alertmanager"
#: An unpacked Debian package still looks for its templates at their installed path.
WITH_TEMPLATES = """
mount -t tmpfs none /usr/share && mkdir /usr/share/prometheus \\
    && cp -r "$0"/usr/share/prometheus/alertmanager /usr/share/prometheus && exec "$0/usr/bin/$@"
"""


def find_program() -> list[str]:
    """Return the beginning of the command; skip the test where there is no Alertmanager."""
    installed, unpacked = shutil.which(NAME), Path(sys.prefix, "debian")
    if installed:
        return [installed]
    own_mounts = ["unshare", "--mount"]
    may_mount = shutil.which("unshare") and not subprocess.run([*own_mounts, "true"], check=False).returncode
    if may_mount and (unpacked / "usr/bin" / NAME).exists():
        return [*own_mounts, "sh", "-c", WITH_TEMPLATES, str(unpacked), NAME]
    pytest.skip(f"{NAME} is missing: apt-get install {NAME}")


@dataclass(frozen=True)
class WebAccess:
    """How an Alertmanager is reached: its web configuration, and a client's TLS context and headers."""

    configuration: Mapping[str, Any]
    context: ssl.SSLContext
    headers: Mapping[str, str] = field(default_factory=dict)


class RunningAlertmanager:
    """An Alertmanager configuration with a fixed address; `running` starts the process."""

    def __init__(
        self, program: list[str], folder: Path, receiver: Receiver, web: WebAccess | None = None
    ) -> None:
        self._port = free_port()
        self._web = web
        self._program = program
        self._folder = folder
        document = {
            "route": {
                "receiver": "hook",
                "group_by": ["cluster"],
                "group_wait": "1s",
                "group_interval": "1s",
                "repeat_interval": "1h",
            },
            "receivers": [
                {"name": "hook", "webhook_configs": [{"url": receiver.url, "send_resolved": True}]}
            ],
        }
        (folder / "alertmanager.yml").write_text(yaml.safe_dump(document))
        if web:
            (folder / "web.yml").write_text(yaml.safe_dump(dict(web.configuration)))

    @property
    def url(self) -> str:
        return f"{'https' if self._web else 'http'}://127.0.0.1:{self._port}"

    @contextmanager
    def running(self) -> Iterator[None]:
        process = subprocess.Popen(
            [
                *self._program,
                f"--config.file={self._folder / 'alertmanager.yml'}",
                f"--storage.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
                "--cluster.listen-address=",
                *([f"--web.config.file={self._folder / 'web.yml'}"] if self._web else ()),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(self._is_ready, PATIENCE_S, "Alertmanager")
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)

    def alerts(self) -> list[dict[str, Any]]:
        headers = dict(self._web.headers) if self._web else {}
        request = urllib.request.Request(f"{self.url}/api/v2/alerts", headers=headers)
        context = self._web.context if self._web else None
        with urllib.request.urlopen(request, timeout=5, context=context) as response:
            alerts: list[dict[str, Any]] = json.load(response)
        return alerts

    def _is_ready(self) -> bool:
        try:
            self.alerts()
        except OSError:
            return False
        return True


def messages(receiver: Receiver) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return each notification's status, with the names and statuses of its alerts."""
    return [
        (body["status"], sorted((alert["labels"]["alertname"], alert["status"]) for alert in body["alerts"]))
        for body in receiver.bodies
    ]
