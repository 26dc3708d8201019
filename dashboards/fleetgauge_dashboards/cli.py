"""The command `fleetgauge dash`; `command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import LakeParam, PathParam, json_option


@click.command(
    cls=Command,
    epilog="""\b
Example:
  fleetgauge dash --config fleet.yaml
  fleetgauge dash --lake ./lake --port 8050""",
)
@click.option(
    "--lake",
    type=LakeParam(),
    help="The lake: a folder or an object store URI. Default: the lake of --config.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=PathParam(),
    help="The fleet file; it names the lake and the time zone of its weeks. Repeat it to serve several "
    "fleets.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8050,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 takes a free port.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Worker processes, each with its own cache. Two serve 20 concurrent users.",
)
@click.option(
    "--user-header",
    help="The request header in which an authenticating reverse proxy names the user, such as "
    "X-Forwarded-User. "
    "Without it there is no login: all users are viewers, except those of this machine who have opened the "
    "link for operators that is printed at the start.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    default=("127.0.0.1", "::1"),
    show_default=True,
    help="The address of a reverse proxy, or a network such as 10.0.0.0/8, whose --user-header, "
    "X-Forwarded-Host and X-Forwarded-Prefix are trusted; may be repeated.",
)
@click.option(
    "--operator",
    "operators",
    multiple=True,
    help="A user, as named by --user-header, who may acknowledge, judge and correct; may be repeated.",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Another host name under which browsers open the pages, beside localhost, IP addresses, --host, "
    "this machine's name and the host of page_url in fleet.yaml; may be repeated. Without --user-header, "
    "requests for other names get 421: another web site may have made such a name resolve to this server.",
)
@click.option(
    "--path",
    default="/",
    show_default=True,
    help="The path below which browsers find the pages, such as /fleetgauge/ behind a reverse proxy that may "
    "remove it or not. A --proxy may name another with X-Forwarded-Prefix.",
)
@json_option(
    'Print {"url": ..., "operator_url": ...} on stdout once the server accepts connections; the latter only '
    "without --user-header, and if the server can be reached over loopback."
)
def dash(**options: Any) -> None:
    """Serve dashboards of a lake's service levels until interrupted.

    Without --user-header, the key in the link for operators is new at every start, unless the environment
    variable FLEETGAUGE_OPERATOR_KEY sets it.
    """
    from fleetgauge_dashboards.command import serve_dashboards

    serve_dashboards(**options)
