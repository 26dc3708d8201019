"""Keys of the JSON that commands print under --json, without a lake, a broker or Spark.

By the types that become JSON: compare, doctor, explain, fleet, report, validate --connect.
By the function that builds the answer, given specimens: backtest, mitigate, recover, replay run.
By the counts that are named: backfill, quarantine replay, run, stream.
By the objects that are written out in the command's text: all the rest, and what is added to the above.
Commands that answer from a lake or a file alone are run as well, by ``run_promises``.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import click

from fleetgauge_core.slo.comparison import MedianDifference
from fleetgauge_dashboards.views.explanation import Explanation
from fleetgauge_dashboards.views.review import Review
from fleetgauge_dashboards.views.samples import MinuteSamples
from fleetgauge_local.doctor.checks import DoctorCheck
from fleetgauge_local.runner_protocol import BrokerFault, FleetStatus, MirrorFault
from fleetgauge_operations.mitigation.commands import _case_document as case_document
from fleetgauge_operations.mitigation.commands import _ProposedAction as ProposedAction
from fleetgauge_operations.recovery.cli_output import drill_document, failback_document, plan_document
from fleetgauge_operations.recovery.plan.map_case import map_document
from fleetgauge_operations.recovery.primaries.promote_output import promotion_document
from fleetgauge_operations.replay.commands import _document as replay_document
from fleetgauge_pipelines.jobs.backtest_command import _document as backtest_document
from fleetgauge_pipelines.jobs.batch_report import COUNT_NAMES
from fleetgauge_probes.connection.cluster_checks import ClusterChecks
from tests.promises.commands import commands_with_json
from tests.promises.key_paths import NONE, Paths, hints_of, in_list, join, paths_of_type, paths_of_value
from tests.promises.source import functions_of, literal_keys
from tests.promises.specimens import specimen

#: What they write out is no answer, or they are run.
_NOT_BY_TEXT = frozenset({"compare", "correct add", "init", "replay run"})


def collect() -> Iterator[str]:
    for name, command in commands_with_json():
        built = _built(name)
        apart = frozenset() if name in _NOT_BY_TEXT else _written_out(command)
        stand_alone = (path for path in apart if not _is_within(path, built))
        yield from (f"{name}: {path}" for path in (*built, *stand_alone))


def _built(name: str) -> Paths:
    return _BUILT[name]() if name in _BUILT else NONE


def _written_out(command: click.Command) -> Paths:
    """Without the path of what an object is put into by another statement."""
    return NONE.union(*map(literal_keys, functions_of(command)))


def _is_within(path: str, paths: Paths) -> bool:
    """Whether one of the paths ends so."""
    return any(f".{known}".endswith(f".{path}") for known in paths)


def _answer(function: Callable[..., Any]) -> Paths:
    """What a function makes of specimens of its parameters."""
    hints = {name: hint for name, hint in hints_of(function).items() if name != "return"}
    answers = (
        function(**{name: specimen(hint, choice) for name, hint in hints.items()}) for choice in (0, 1)
    )
    return NONE.union(*map(paths_of_value, answers))


def _counts() -> Paths:
    return frozenset(COUNT_NAMES)


def _planned() -> Paths:
    return _answer(lambda: specimen(ProposedAction).document())


def _explained() -> Paths:
    samples = in_list(paths_of_type(MinuteSamples))
    return paths_of_type(Explanation) | {join("samples", path) for path in samples}


def _tried() -> Paths:
    return frozenset(join("clusters[]", path) for path in paths_of_type(ClusterChecks))


def _listed(paths: Callable[[], Paths]) -> Callable[[], Paths]:
    return lambda: in_list(paths())


_plans = _listed(partial(_answer, plan_document))
_broker_fault = partial(paths_of_type, BrokerFault)
_status = partial(paths_of_type, FleetStatus)
_case = partial(_answer, case_document)

_BUILT: Mapping[str, Callable[[], Paths]] = {
    "backfill": _counts,
    "backtest": _listed(partial(_answer, backtest_document)),
    "compare": partial(paths_of_type, MedianDifference),
    "doctor": _listed(partial(paths_of_type, DoctorCheck)),
    "explain": _explained,
    "fleet fault blackhole": _broker_fault,
    "fleet fault hang": partial(paths_of_type, BrokerFault | MirrorFault),
    "fleet fault heal": partial(paths_of_type, BrokerFault | MirrorFault),
    "fleet fault kill": partial(paths_of_type, BrokerFault | MirrorFault),
    "fleet fault slow": _broker_fault,
    "fleet status": _status,
    "fleet up": _status,
    "mitigate apply": lambda: _planned() | _case(),
    "mitigate history": _listed(_case),
    "mitigate plan": _listed(_planned),
    "mitigate run": _listed(_case),
    "mitigate undo": _case,
    "quarantine replay": _counts,
    "recover drill": partial(_answer, drill_document),
    "recover failback": partial(_answer, failback_document),
    "recover map": partial(_answer, map_document),
    "recover plan": _plans,
    "recover promote": partial(_answer, promotion_document),
    "recover run": _plans,
    "recover sync": _plans,
    "replay run": _listed(partial(_answer, replay_document)),
    "report": partial(paths_of_type, Review),
    "run": _counts,
    "stream": _counts,
    "validate": _tried,
}
