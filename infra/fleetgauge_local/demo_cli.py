"""`fleetgauge demo`."""

import random
import re
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import platformdirs
from rich.status import Status

from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_local.demo import (
    FAULT_AFTER_S,
    Named,
    Running,
    Say,
    hurt,
    page_status,
    running_demo,
    wait_for,
    wait_until_caught_up,
    wait_until_named,
)
from fleetgauge_local.distribution import KAFKA_LOCK
from fleetgauge_local.doctor.judge import CACHE_BYTES, STATE_BYTES, enough_disk, enough_memory
from fleetgauge_local.doctor.machine import available_memory_bytes, place
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.history import CLUSTERS, WEEKS, history
from fleetgauge_local.lake_counts import LakeCounts, recovery_counts
from fleetgauge_local.layout import TOPOLOGIES, Topology
from fleetgauge_local.messages import Fault, Kind
from fleetgauge_local.mirror_maker import MIRROR_LOCK
from fleetgauge_local.ports import PAGE_PORT, free_ports, is_free
from fleetgauge_local.traffic import BILLING
from fleetgauge_pipelines.io.cache import default_cache
from fleetgauge_pipelines.io.errors import SetupError
from fleetgauge_pipelines.io.jars import SPARK_LOCK, ensure
from fleetgauge_pipelines.io.java import find_java

_FOREVER_S = 3600.0
_UNITS_S = {"s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType[float]):
    """`90s`, `5m` or `1h`, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if found is None:
            self.fail(f"{value!r} is not a duration such as 90s, 5m or 1h", param, ctx)
        return float(found[1]) * _UNITS_S[found[2] or "s"]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What was asked for. ``for_s`` None: until ^C."""

    for_s: float | None
    kind: Kind | None
    regions: bool
    port: int
    directory: Path
    with_history: bool
    as_json: bool

    @property
    def topology(self) -> Topology:
        return TOPOLOGIES["regions" if self.regions else "clusters"]

    @property
    def locks(self) -> tuple[Path, ...]:
        """Of all jars that it takes."""
        return (KAFKA_LOCK, SPARK_LOCK, *((MIRROR_LOCK,) if self.regions else ()))


@click.command(
    epilog="\b\nExample:\n  fleetgauge demo --for 5m --fault hang --json\n  fleetgauge demo --regions"
)
@click.option(
    "--for", "for_s", type=Duration(), help="End by itself so long after it is ready (90s, 5m); else at ^C."
)
@click.option(
    "--fault",
    "kind",
    type=click.Choice(["hang", "kill", "blackhole"]),
    help="Break a broker; it must be named.",
)
@click.option(
    "--regions",
    is_flag=True,
    help="Two regions instead, copied by MirrorMaker into an aggregate each, with producers and groups, and "
    "`recover run --execute`.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=None,
    help=f"The page's port.  [default: {PAGE_PORT}, else a free one]",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: platformdirs.user_state_path("fleetgauge") / "demo",
    show_default="the user's state folder",
    help="Where it all lives; an earlier demo's data there goes.",
)
@click.option(
    "--history/--no-history",
    "with_history",
    default=None,
    show_default="history; with --regions none",
    help=f"Show {CLUSTERS} simulated clusters over {WEEKS} weeks beside the real ones.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout at the end.")
def demo(
    for_s: float | None,
    kind: Kind | None,
    regions: bool,
    port: int | None,
    directory: Path,
    with_history: bool | None,
    as_json: bool,
) -> None:
    """Run real Kafka clusters and all of Fleetgauge on this machine; ^C ends everything."""
    started = time.monotonic()
    if kind and for_s is None:
        raise InputError("--fault needs --for, as in: fleetgauge demo --for 5m --fault hang")
    history_too = not regions if with_history is None else with_history
    wanted = _Wanted(for_s, kind, regions, _page_port(port), directory, history_too, as_json)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Explicitly, for a shell's background job inherits an ignored SIGINT.
        signal.signal(number, signal.default_int_handler)
    try:
        with console.status("starting") as spinner:
            succeeded = _run(wanted, _saying(spinner), started)
    except (LocalFleetError, SetupError) as error:
        raise InputError(str(error)) from error
    except KeyboardInterrupt:
        console.print("ended")
        return
    if not succeeded:
        raise SystemExit(1)


def _saying(spinner: Status) -> Say:
    """What is being done; where no terminal shows it turning, a line for each new thing."""
    if console.is_terminal:
        return spinner.update
    said = set[str]()

    def say(text: str) -> None:
        words = re.sub(r"\d+", "", text)
        if words not in said:
            said.add(words)
            console.print(text, markup=False, soft_wrap=True)

    return say


def _run(wanted: _Wanted, say: Say, started: float) -> bool:
    """Whether the page answered and the fault, if there was one, was named rightly."""
    directory = wanted.directory
    _refuse_what_cannot_end_well(directory)
    find_java(default_cache(), say)
    for lock in wanted.locks:
        ensure(lock, default_cache(), say)
    for old in ("lake", "logs", "spool"):
        shutil.rmtree(directory / old, ignore_errors=True)
    past = _past(directory, say) if wanted.with_history else None
    with running_demo(directory, wanted.port, say, started, past, wanted.topology) as running:
        _introduce(running, directory)
        if wanted.for_s is None:
            while True:
                wait_for(_FOREVER_S, running, lambda _: say("running; ^C ends it"), "")
        fault, named = _exercise(running, wanted.kind, wanted.for_s, say)
        found = wait_until_caught_up(running, datetime.now(UTC), say)
        status = page_status(running.page_url)
        report = _report(running, found, status, fault, named) | {"history": str(past) if past else None}
        if running.with_mirrors:
            report |= _report_of_regions(running)
    if wanted.as_json:
        print_json(report)
    else:
        console.print_json(data=report)
    rightly = fault is None or (
        named is not None and (named.cluster, named.broker) == (fault.cluster, fault.broker)
    )
    return status == 200 and rightly


def _past(directory: Path, say: Say) -> Path:
    log = directory / "logs" / "simulate.log"
    return history(default_cache(), log, datetime.now(UTC).date(), say)


def _refuse_what_cannot_end_well(directory: Path) -> None:
    """Brokers that die of hunger half way say less than this."""
    for check in (
        enough_memory(available_memory_bytes()),
        enough_disk("disk for the demo", place(directory), STATE_BYTES),
        enough_disk("disk for the cache", place(default_cache()), CACHE_BYTES),
    ):
        if not check.ok:
            raise LocalFleetError(f"{check.check}: {check.found}: {check.mend}")


def _exercise(
    running: Running, kind: Kind | None, for_s: float, say: Say
) -> tuple[Fault | None, Named | None]:
    """Let it run for so long, with a fault in it if one is asked for."""
    until = time.monotonic() + for_s
    fault = named = None
    if kind:
        wait_for(min(FAULT_AFTER_S, for_s / 2), running, say, "running")
        fault = hurt(running, kind)
        console.print(f"{fault.at} {kind}: broker {fault.broker} of {fault.cluster}")
        named = wait_until_named(running, datetime.fromisoformat(fault.at), say)
        if named:
            console.print(f"named after {named.after_s:.1f} s: broker {named.broker} of {named.cluster}")
    wait_for(until - time.monotonic(), running, say, "running")
    return fault, named


def _report(
    running: Running, found: LakeCounts, status: int | None, fault: Fault | None, named: Named | None
) -> dict[str, Any]:
    return {
        "clusters": len(running.fleet.clusters),
        "brokers": running.brokers,
        "seconds_to_ready": round(running.seconds_to_ready, 1),
        "probe_minutes": found.probe_minutes,
        "broker_minutes": found.broker_minutes,
        "cluster_weeks": found.cluster_weeks,
        "fleet_weeks": found.fleet_weeks,
        "quarantined": found.quarantined,
        "page_url": running.page_url,
        "page_status": status,
        "fault": {"cluster": fault.cluster, "broker": fault.broker, "kind": fault.kind} if fault else None,
        "fault_named": {"cluster": named.cluster, "broker": named.broker} if named else None,
        "fault_named_after_s": round(named.after_s, 1) if named else None,
        "lake": running.fleet.lake,
    }


def _report_of_regions(running: Running) -> dict[str, Any]:
    found = recovery_counts(Path(running.fleet.lake))
    return {
        "mirrors": len(running.local.status().mirrors),
        "groups": found.groups,
        "groups_ready": found.groups_ready,
        "checkpoints": found.checkpoints,
        "recovery_page_status": page_status(f"{running.page_url}recovery"),
    }


def _introduce(running: Running, directory: Path) -> None:
    clusters = ", ".join(cluster.id for cluster in running.fleet.clusters)
    console.print(f"\nReady after {running.seconds_to_ready:.0f} s: {running.brokers} brokers in {clusters}.")
    console.print(f"The page: {running.page_url}\n", style="bold")
    console.print("Three things to try in another terminal (activate .venv first):")
    tries = _tries_of_regions if running.with_mirrors else _tries
    for number, (command, effect) in enumerate(tries(running, directory), start=1):
        console.print(f"  {number}. {command}", soft_wrap=True, markup=False)
        console.print(f"     {effect}", soft_wrap=True, markup=False)
    console.print()


def _tries(running: Running, directory: Path) -> Iterator[tuple[str, str]]:
    """Commands, and what each does."""
    first, last = running.fleet.clusters[0].id, running.fleet.clusters[-1].id
    command = f"fleetgauge fleet fault {{}} --dir {directory}"
    yield (
        command.format(f"hang {first} 2 --for 60"),
        "The page names the broker within seconds and clears it after its return.",
    )
    yield (
        command.format(f"slow {last} 3 --ms 60"),
        f"{running.page_url}cluster/{last}: the leader leg shows whose fault it is.",
    )
    yield command.format(f"heal {last} 3"), "And the minutes are good again; the week keeps what it cost."


def _tries_of_regions(running: Running, directory: Path) -> Iterator[tuple[str, str]]:
    """Commands, and what each does."""
    pair = running.fleet.recovery.groups[0]
    config = f"--config {running.local.fleet_file}"
    yield (
        f"fleetgauge recover plan {config}",
        f"Where each group of {pair.active} would go on in {pair.passive}, and what it would read again.",
    )
    way = f"--from {pair.active} --to {pair.passive}"
    yield (
        f"fleetgauge recover drill {way} --group {BILLING.group} --execute {config}",
        f"A failover of {BILLING.group} tried: what it reads again, and that nothing is missing.",
    )
    yield (
        f"fleetgauge fleet fault hang --mirror {pair.passive} --for 90 --dir {directory}",
        f"{running.page_url}recovery: no group is ready while nothing is copied.",
    )


def _page_port(wanted: int | None) -> int:
    """The wanted port, the usual one where it is free, or any free one."""
    if wanted:
        if not is_free(wanted):
            raise InputError(f"port {wanted} is taken: choose another with --port, or leave it out")
        return wanted
    return PAGE_PORT if wanted is None and is_free(PAGE_PORT) else free_ports(1, random.Random())[0]  # noqa: S311
