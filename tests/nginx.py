"""A real nginx as a reverse proxy on loopback ports."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.waiting import wait_until

PATIENCE_S = 30
_CONFIGURATION = """
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr;
{user}
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {servers}
}}
"""


def find_nginx() -> str:
    """Return the program, installed or unpacked from its Debian package; skip the test without it."""
    program = shutil.which("nginx") or shutil.which("nginx", path=Path(sys.prefix, "debian/usr/sbin"))
    if program is None:
        pytest.skip("nginx is missing: apt-get install nginx")
    return program


@contextmanager
def run_nginx(folder: Path, servers: Sequence[str]) -> Iterator[list[str]]:
    """Run a server for each body of a server block; yield their URLs."""
    ports = [free_port() for _ in servers]
    blocks = (
        f"server {{ listen 127.0.0.1:{port}; {body} }}" for port, body in zip(ports, servers, strict=True)
    )
    configuration = _CONFIGURATION.format(
        folder=folder, servers="\n".join(blocks), user="user root;" if os.getuid() == 0 else ""
    )
    (folder / "nginx.conf").write_text(configuration)
    command = [find_nginx(), "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: process.poll() is not None or all(map(_is_open, ports)), PATIENCE_S, "nginx")
            assert process.poll() is None, process.stderr and process.stderr.read()
            yield [f"http://127.0.0.1:{port}" for port in ports]
        finally:
            process.terminate()


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
