"""Keys of the JSON that commands print under --json, without a lake, a broker or Spark.

Keys are collected from
- the types that become JSON: compare, doctor, explain, fleet, report, validate --connect;
- the function that builds the output, called with specimens: backtest, changes, mitigate, recover,
  replay run;
- the names of counts: backfill, quarantine replay, run, stream;
- the dict literals in a command's source: all other commands, and additions to the above.
Commands that need only a lake or a file are also run, by ``run_promises``.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import click

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.contract.change_document import change_document
from fleetgauge_core.slo.comparison import MedianDifference
from fleetgauge_dashboards.views.explanation import Explanation
from fleetgauge_dashboards.views.review import Review
from fleetgauge_dashboards.views.samples import MinuteSamples
from fleetgauge_local.doctor.checks import DoctorCheck
from fleetgauge_local.runner_protocol import BrokerFault, BrokerRestart, FleetStatus, MirrorFault
from fleetgauge_operations.mitigation.commands import _case_document as case_document
from fleetgauge_operations.mitigation.commands import _ProposedAction as ProposedAction
from fleetgauge_operations.notify.marked_test import NotifierAnswer
from fleetgauge_operations.recovery.cli_output import drill_document, failback_document, plan_document
from fleetgauge_operations.recovery.plan.map_case import map_document
from fleetgauge_operations.recovery.primaries.promote_output import promotion_document
from fleetgauge_operations.replay.commands import _document as replay_document
from fleetgauge_pipelines.jobs.backtest_command import _document as backtest_document
from fleetgauge_pipelines.jobs.batch_report import COUNT_NAMES
from fleetgauge_probes.connection.cluster_checks import ClusterChecks
from fleetgauge_probes.connection.notifier_checks import NotifierChecks
from tests.promises.commands import commands_with_json
from tests.promises.key_paths import NONE, Paths, in_list, join, paths_of_type, paths_of_value, resolve_hints
from tests.promises.source import find_functions, literal_keys
from tests.promises.specimens import specimen

#: Commands whose dict literals are not their output, or which are run.
_NOT_BY_LITERALS = frozenset({"compare", "correct add", "init", "replay run"})


def collect() -> Iterator[str]:
    for name, command in commands_with_json():
        built = _collect_built(name)
        literals = frozenset() if name in _NOT_BY_LITERALS else _collect_literals(command)
        additional = (path for path in literals if not _is_within(path, built))
        yield from (f"{name}: {path}" for path in (*built, *additional))


def _collect_built(name: str) -> Paths:
    return _BUILT[name]() if name in _BUILT else NONE


def _collect_literals(command: click.Command) -> Paths:
    """Return the key paths of dict literals, without the path to which another statement assigns them."""
    return NONE.union(*map(literal_keys, find_functions(command)))


def _is_within(path: str, paths: Paths) -> bool:
    """Return whether one of the paths ends with ``path``."""
    return any(f".{known}".endswith(f".{path}") for known in paths)


def _call_with_specimens(function: Callable[..., Any]) -> Paths:
    """Return the key paths of a function's results for specimens of its parameters."""
    hints = {name: hint for name, hint in resolve_hints(function).items() if name != "return"}
    results = (
        function(**{name: specimen(hint, choice) for name, hint in hints.items()}) for choice in (0, 1)
    )
    return NONE.union(*map(paths_of_value, results))


def _collect_counts() -> Paths:
    return frozenset(COUNT_NAMES)


def _collect_proposed_action() -> Paths:
    return _call_with_specimens(lambda: specimen(ProposedAction).document())


def _collect_explanation() -> Paths:
    samples = in_list(paths_of_type(MinuteSamples))
    return paths_of_type(Explanation) | {join("samples", path) for path in samples}


def _collect_connection_checks() -> Paths:
    return frozenset(
        join(key, path)
        for key, entry in (("clusters[]", ClusterChecks), ("notifiers[]", NotifierChecks))
        for path in paths_of_type(entry)
    )


def _collect_notifier_answers() -> Paths:
    return in_list(paths_of_type(NotifierAnswer))


def _collect_list_of(paths: Callable[[], Paths]) -> Callable[[], Paths]:
    return lambda: in_list(paths())


def _collect_change() -> Paths:
    at = datetime(2026, 3, 2, tzinfo=UTC)
    records = (
        ClusterChange("event", "change", "orders", "topic_created", "happened", at, at, ends, "observer")
        for ends in (None, at)
    )
    return NONE.union(*(paths_of_value(change_document(record)) for record in records))


_plans = _collect_list_of(partial(_call_with_specimens, plan_document))
_broker_fault = partial(paths_of_type, BrokerFault)
_status = partial(paths_of_type, FleetStatus)
_case = partial(_call_with_specimens, case_document)

_BUILT: Mapping[str, Callable[[], Paths]] = {
    "backfill": _collect_counts,
    "backtest": _collect_list_of(partial(_call_with_specimens, backtest_document)),
    "change add": _collect_change,
    "changes": _collect_list_of(_collect_change),
    "compare": partial(paths_of_type, MedianDifference),
    "doctor": _collect_list_of(partial(paths_of_type, DoctorCheck)),
    "explain": _collect_explanation,
    "fleet fault blackhole": _broker_fault,
    "fleet fault hang": partial(paths_of_type, BrokerFault | MirrorFault),
    "fleet fault heal": partial(paths_of_type, BrokerFault | MirrorFault),
    "fleet fault kill": partial(paths_of_type, BrokerFault | MirrorFault),
    "fleet fault slow": _broker_fault,
    "fleet restart": partial(paths_of_type, BrokerRestart),
    "fleet status": _status,
    "fleet up": _status,
    "mitigate apply": lambda: _collect_proposed_action() | _case(),
    "mitigate history": _collect_list_of(_case),
    "mitigate plan": _collect_list_of(_collect_proposed_action),
    "mitigate run": _collect_list_of(_case),
    "mitigate undo": _case,
    "notify test": _collect_notifier_answers,
    "quarantine replay": _collect_counts,
    "recover drill": partial(_call_with_specimens, drill_document),
    "recover failback": partial(_call_with_specimens, failback_document),
    "recover map": partial(_call_with_specimens, map_document),
    "recover plan": _plans,
    "recover promote": partial(_call_with_specimens, promotion_document),
    "recover run": _plans,
    "recover sync": _plans,
    "replay run": _collect_list_of(partial(_call_with_specimens, replay_document)),
    "report": partial(paths_of_type, Review),
    "run": _collect_counts,
    "stream": _collect_counts,
    "validate": _collect_connection_checks,
}
