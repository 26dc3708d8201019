"""What `fleetgauge demo` does: run a local fleet with all Fleetgauge services."""

import random
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.status import Status

from fleetgauge_core.lake.delta_table import ensure_usable_path
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.supervision import supervise_process
from fleetgauge_local.demo import (
    FAULT_AFTER_S,
    BrokerDetection,
    ReportProgress,
    RunningDemo,
    inject_fault,
    read_page_status,
    run_for,
    running_demo,
    wait_for_detection,
    wait_until_caught_up,
)
from fleetgauge_local.distribution import KAFKA_LOCK
from fleetgauge_local.doctor.checks import CACHE_BYTES, STATE_BYTES, check_disk, check_memory
from fleetgauge_local.doctor.machine import inspect_folder, measure_available_memory_bytes
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.lake_counts import LakeCounts, count_recovery_rows
from fleetgauge_local.layout import TOPOLOGIES, Topology
from fleetgauge_local.mirror_maker import MIRROR_LOCK
from fleetgauge_local.ports import PAGE_PORT, find_free_ports, is_free
from fleetgauge_local.runner_protocol import BrokerFault, FaultKind
from fleetgauge_local.simulated_history import simulate_history
from fleetgauge_local.traffic import BILLING
from fleetgauge_pipelines.io.cache import default_cache_folder
from fleetgauge_pipelines.io.class_archive import writing_archive
from fleetgauge_pipelines.io.jars import SPARK_LOCK, fetch_jars
from fleetgauge_pipelines.io.java import find_java

_FOREVER_S = 3600.0
#: How long the services may take to end one after another, with a batch of the stream, and then the brokers.
_SHUTDOWN_DEADLINE_S = 240.0


@dataclass(frozen=True, slots=True)
class _DemoOptions:
    """The command's options. With ``for_s`` None the demo runs until ^C."""

    for_s: float | None
    kind: FaultKind | None
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
        """The lock files of all jars that the demo needs."""
        return (SPARK_LOCK, KAFKA_LOCK, *((MIRROR_LOCK,) if self.regions else ()))


def run_demo(
    for_s: float | None,
    kind: FaultKind | None,
    regions: bool,
    port: int | None,
    directory: Path,
    with_history: bool | None,
    as_json: bool,
) -> None:
    """Run the demo until ^C or for ``for_s`` seconds; exit with 1 if it fails its own checks."""
    started = time.monotonic()
    if kind and for_s is None:
        raise InputError("--fault needs --for, as in: fleetgauge demo --for 5m --fault hang")
    show_history = not regions if with_history is None else with_history
    options = _DemoOptions(for_s, kind, regions, _page_port(port), directory, show_history, as_json)
    try:
        with (
            supervise_process(_SHUTDOWN_DEADLINE_S, interrupts=True) as shutdown,
            console.status("starting") as spinner,
        ):
            succeeded = _run(options, _create_progress(spinner), started, shutdown)
    except KeyboardInterrupt:
        console.print("ended")
        return
    if not succeeded:
        raise SystemExit(1)


def _create_progress(spinner: Status) -> ReportProgress:
    """Return a callback that updates the spinner, or without a terminal prints a line per new activity."""
    if console.is_terminal:
        return spinner.update
    printed = set[str]()

    def print_once(text: str) -> None:
        activity = re.sub(r"\d+", "", text)
        if activity not in printed:
            printed.add(activity)
            console.print(text, markup=False, soft_wrap=True)

    return print_once


def _run(options: _DemoOptions, progress: ReportProgress, started: float, shutdown: ShutdownFlag) -> bool:
    """Run the demo; return whether the dashboard responded and the fault, if any, was detected correctly."""
    directory = options.directory
    ensure_usable_path(str(directory / "lake"))
    _check_resources(directory)
    cache = default_cache_folder()
    java = find_java(cache, progress)
    # Spark's are first: its archive of classes is written while the others are fetched.
    first, *others = options.locks
    fetch_jars(first, cache, progress)
    with writing_archive(cache, java, progress):
        for lock in others:
            fetch_jars(lock, cache, progress)
    for old in ("lake", "logs", "spool"):
        shutil.rmtree(directory / old, ignore_errors=True)
    past = _simulate_past(directory, progress) if options.with_history else None
    with running_demo(
        directory, options.port, progress, started, shutdown, past, options.topology
    ) as running:
        _print_introduction(running, directory)
        if options.for_s is None:
            while True:
                run_for(_FOREVER_S, running, lambda _: progress("running; press ^C to end"), "")
        fault, detection = _exercise(running, options.kind, options.for_s, progress)
        counts = wait_until_caught_up(running, datetime.now(UTC), progress)
        status = read_page_status(running.page_url)
        report = _report(running, counts, status, fault, detection) | {"history": str(past) if past else None}
        if running.with_mirrors:
            report |= _report_regions(running)
    if options.as_json:
        print_json(report)
    else:
        console.print_json(data=report)
    detected = fault is None or (
        detection is not None and (detection.cluster, detection.broker) == (fault.cluster, fault.broker)
    )
    return status == 200 and detected


def _simulate_past(directory: Path, progress: ReportProgress) -> Path:
    log = directory / "logs" / "simulate.log"
    return simulate_history(default_cache_folder(), log, datetime.now(UTC).date(), progress)


def _check_resources(directory: Path) -> None:
    """Check memory and disk first, as brokers that run out of them fail with unclear errors.

    Raises: LocalFleetError when memory or disk space does not suffice.
    """
    for check in (
        check_memory(measure_available_memory_bytes()),
        check_disk("disk for the demo", inspect_folder(directory), STATE_BYTES),
        check_disk("disk for the cache", inspect_folder(default_cache_folder()), CACHE_BYTES),
    ):
        if not check.ok:
            raise LocalFleetError(f"{check.check}: {check.found}: {check.mend}")


def _exercise(
    running: RunningDemo, kind: FaultKind | None, for_s: float, progress: ReportProgress
) -> tuple[BrokerFault | None, BrokerDetection | None]:
    """Run the demo for ``for_s`` seconds and inject a fault of this kind if given."""
    until = time.monotonic() + for_s
    fault = detection = None
    if kind:
        run_for(min(FAULT_AFTER_S, for_s / 2), running, progress, "running")
        fault = inject_fault(running, kind)
        console.print(f"{fault.at} {kind}: broker {fault.broker} of {fault.cluster}")
        detection = wait_for_detection(running, datetime.fromisoformat(fault.at), progress)
        if detection:
            console.print(
                f"detected after {detection.after_s:.1f} s: broker {detection.broker} of {detection.cluster}"
            )
    run_for(until - time.monotonic(), running, progress, "running")
    return fault, detection


def _report(
    running: RunningDemo,
    counts: LakeCounts,
    status: int | None,
    fault: BrokerFault | None,
    detection: BrokerDetection | None,
) -> dict[str, Any]:
    return {
        "clusters": len(running.fleet.clusters),
        "brokers": running.brokers,
        "seconds_to_ready": round(running.seconds_to_ready, 1),
        "probe_minutes": counts.probe_minutes,
        "broker_minutes": counts.broker_minutes,
        "cluster_weeks": counts.cluster_weeks,
        "fleet_weeks": counts.fleet_weeks,
        "quarantined": counts.quarantined,
        "page_url": running.page_url,
        "page_status": status,
        "fault": {"cluster": fault.cluster, "broker": fault.broker, "kind": fault.kind} if fault else None,
        "fault_named": {"cluster": detection.cluster, "broker": detection.broker} if detection else None,
        "fault_named_after_s": round(detection.after_s, 1) if detection else None,
        "lake": running.fleet.lake,
    }


def _report_regions(running: RunningDemo) -> dict[str, Any]:
    counts = count_recovery_rows(Path(running.fleet.lake))
    return {
        "mirrors": len(running.local.status().mirrors),
        "groups": counts.groups,
        "groups_ready": counts.groups_ready,
        "checkpoints": counts.checkpoints,
        "recovery_page_status": read_page_status(f"{running.page_url}recovery"),
    }


def _print_introduction(running: RunningDemo, directory: Path) -> None:
    clusters = ", ".join(cluster.id for cluster in running.fleet.clusters)
    console.print(f"\nReady after {running.seconds_to_ready:.0f} s: {running.brokers} brokers in {clusters}.")
    console.print(f"Dashboard: {running.page_url}", style="bold")
    console.print(
        f"To acknowledge alerts and add corrections, open {running.operator_url}\n",
        soft_wrap=True,
        markup=False,
    )
    console.print("Three commands to try in another terminal (activate .venv first):")
    suggestions = _suggest_region_commands if running.with_mirrors else _suggest_commands
    for number, (command, effect) in enumerate(suggestions(running, directory), start=1):
        console.print(f"  {number}. {command}", soft_wrap=True, markup=False)
        console.print(f"     {effect}", soft_wrap=True, markup=False)
    console.print()


def _suggest_commands(running: RunningDemo, directory: Path) -> Iterator[tuple[str, str]]:
    """Yield commands with a description of their effect."""
    first, last = running.fleet.clusters[0].id, running.fleet.clusters[-1].id
    command = f"fleetgauge fleet fault {{}} --dir {directory}"
    yield (
        command.format(f"hang {first} 2 --for 60"),
        "The dashboard reports the broker as down within seconds, and clears it after it resumes.",
    )
    yield (
        command.format(f"slow {last} 3 --ms 60"),
        f"{running.page_url}cluster/{last}: the leader leg identifies the slow broker.",
    )
    yield (
        command.format(f"heal {last} 3"),
        "New minutes are good again; the week's error budget keeps the loss.",
    )


def _suggest_region_commands(running: RunningDemo, directory: Path) -> Iterator[tuple[str, str]]:
    """Yield commands with a description of their effect."""
    pair = running.fleet.recovery.groups[0]
    config = f"--config {running.local.fleet_file}"
    yield (
        f"fleetgauge recover plan {config}",
        f"Where groups of {pair.active} would resume in {pair.passive}, and how many records they reprocess.",
    )
    direction = f"--from {pair.active} --to {pair.passive}"
    yield (
        f"fleetgauge recover drill {direction} --group {BILLING.group} --execute {config}",
        f"Tests a failover of group {BILLING.group}: counts reprocessed and missing records.",
    )
    yield (
        f"fleetgauge fleet fault hang --mirror {pair.passive} --for 90 --dir {directory}",
        f"{running.page_url}recovery: no group is ready while replication is stopped.",
    )


def _page_port(requested: int | None) -> int:
    """Return the requested port; by default the usual port if it is free, else any free port."""
    if requested:
        if not is_free(requested):
            raise InputError(f"port {requested} is taken: choose another with --port, or omit the option")
        return requested
    if requested is None and is_free(PAGE_PORT):
        return PAGE_PORT
    return find_free_ports(1, random.Random())[0]
