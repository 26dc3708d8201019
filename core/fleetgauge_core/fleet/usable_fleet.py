"""Load what is usable of a fleet file: a bad cluster, notifier or source of changes leaves all others."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fleetgauge_core.fleet.cluster import Cluster
from fleetgauge_core.fleet.load import (
    FleetFileError,
    describe_error,
    describe_errors,
    describe_value_error,
    is_consequence,
    read_document,
    validate_document,
)
from fleetgauge_core.fleet.model import ENTRY_ERROR, Fleet
from fleetgauge_core.fleet.recovery import Recovery

#: The lists of which a process may run without an entry, and what an entry is called.
_PARTS = {"clusters": "cluster", "notifiers": "notifier", "change_sources": "change_source"}
#: Keys of a cluster that only a process uses which connects to it or acts on it.
_ACCESS_KEYS = frozenset({"bootstrap", "security", "managed", "demoted", "restart", "metrics", "mitigation"})
#: Replaces a bad address that no client is given; by RFC 6761 the name never resolves.
_NO_BOOTSTRAP = "unusable.invalid:9092"

#: The values of each list by their position in the file.
_Entries = Mapping[str, dict[int, Any]]
#: The errors by list and position.
_EntryErrors = Mapping[tuple[str, int], Sequence[ErrorDetails]]


@dataclass(frozen=True, slots=True)
class EntryProblem:
    """Why an entry of the fleet file cannot be used; ``message`` is one line without secrets."""

    part: str
    """`cluster`, `notifier` or `change_source`."""
    name: str
    """The ID of the cluster; the position in the file, as in `notifiers.1`, if it has no valid one."""
    message: str
    cluster_id: str | None = None


class UsableFleet(NamedTuple):
    """A fleet without the entries that cannot be used, and the problems of those."""

    fleet: Fleet
    problems: tuple[EntryProblem, ...] = ()

    @property
    def unusable_ids(self) -> frozenset[str]:
        """The IDs of clusters with a bad entry; one that is given twice has a usable entry as well."""
        return frozenset(problem.cluster_id for problem in self.problems if problem.cluster_id is not None)

    @property
    def has_unknown_cluster(self) -> bool:
        """Whether a bad entry has no valid ID: it may be that of any cluster which the fleet lacks."""
        return any(problem.part == "cluster" and problem.cluster_id is None for problem in self.problems)


def list_messages(problems: Iterable[EntryProblem], part: str, remedy: str) -> dict[str, str]:
    """Return the messages about one kind of part by name, each ending with how to mend it."""
    messages: dict[str, str] = {}
    for problem in problems:
        if problem.part == part:
            earlier = f"{messages[problem.name]}; " if problem.name in messages else ""
            messages[problem.name] = f"{earlier}{problem.message}"
    return {name: f"{message}; {remedy}" for name, message in messages.items()}


def load_usable_fleet(path: Path, *, connects: bool = True, previous: Fleet | None = None) -> UsableFleet:
    """Return what is usable of a fleet file, and the problems of the rest.

    Of the entries with one ID the first counts. Parts of `recovery` that refer to a cluster without a usable
    entry are left out. Unless the caller ``connects`` to clusters, the keys for that may be bad. If no
    cluster is usable, those of the ``previous`` fleet stay.

    Raises: FleetFileError for errors of the file as a whole, and if there is no cluster at all.
    """
    document = read_document(path)
    entries: _Entries = {
        key: dict(enumerate(document[key])) for key in _PARTS if isinstance(document.get(key), list)
    }
    problems: list[EntryProblem] = []
    first_error: ValidationError | None = None
    while True:
        try:
            fleet = validate_document(_merge(document, entries, problems, previous), path)
            return UsableFleet(fleet, tuple(problems))
        except ValidationError as error:
            first_error = first_error or error
            errors = _group_by_entry(error, entries)
            if not errors:
                raise FleetFileError(f"{path}: {'; '.join(describe_errors(first_error))}") from error
        for (key, position), details in errors.items():
            value = entries[key].pop(position)
            mended = None if connects else _leave_out_access(key, value, details)
            if mended is None:
                problems.append(_describe_problem(key, position, value, details))
            else:
                entries[key][position] = mended


def keep_previous_entries(previous: Fleet, loaded: UsableFleet) -> Fleet:
    """Return a loaded fleet in which what has a bad entry stays as it was in the previous fleet.

    An entry without a valid ID may be that of any cluster which is missing now, and a bad notifier or source
    of changes any missing one, so all of those stay.
    """
    fleet, ids = loaded.fleet, {cluster.id for cluster in loaded.fleet.clusters}
    earlier = {cluster.id: cluster for cluster in previous.clusters}
    kept = [
        cluster
        for cluster in previous.clusters
        if cluster.id not in ids and (loaded.has_unknown_cluster or cluster.id in loaded.unusable_ids)
    ]
    clusters = (
        *(
            earlier.get(cluster.id, cluster) if cluster.id in loaded.unusable_ids else cluster
            for cluster in fleet.clusters
        ),
        *kept,
    )
    notifiers = fleet.notifiers
    if any(problem.part == "notifier" for problem in loaded.problems):
        present = {notifier.identity for notifier in notifiers}
        names = {notifier.name for notifier in notifiers if notifier.name}
        notifiers += tuple(
            each for each in previous.notifiers if each.identity not in present and each.name not in names
        )
    sources = fleet.change_sources
    if any(problem.part == "change_source" for problem in loaded.problems):
        listed = {source.name for source in sources}
        sources += tuple(source for source in previous.change_sources if source.name not in listed)
    return fleet.model_copy(
        update={
            "clusters": clusters,
            "notifiers": notifiers,
            "change_sources": sources,
            "objectives": _earlier_objectives(previous, fleet, clusters) | fleet.objectives,
        }
    )


def _earlier_objectives(previous: Fleet, fleet: Fleet, clusters: Sequence[Cluster]) -> dict[str, Any]:
    """Return the objectives of the tiers that only clusters with their previous entry have."""
    tiers = {cluster.tier for cluster in clusters} - fleet.objective_by_tier.keys()
    return {tier: objective for tier, objective in previous.objectives.items() if tier in tiers}


def _merge(
    document: Mapping[Any, Any],
    entries: _Entries,
    problems: Sequence[EntryProblem],
    previous: Fleet | None,
) -> dict[Any, Any]:
    """Return the document with these entries, and with the parts of recovery that refer to them."""
    merged = {
        **document,
        **{key: [values[position] for position in sorted(values)] for key, values in entries.items()},
    }
    if not any(problem.part == "cluster" for problem in problems):
        return merged
    ids = {_read_id(value) for value in merged["clusters"]}
    if previous and not merged["clusters"]:
        merged["clusters"], ids = previous.clusters, {cluster.id for cluster in previous.clusters}
    if "recovery" in document:
        try:
            recovery = Recovery.model_validate(document["recovery"])
        except ValidationError:
            # An error of the file as a whole, which validating the document reports.
            return merged
        referenced = recovery.mirrored_clusters | recovery.referenced_clusters
        merged["recovery"] = recovery.without_clusters(referenced - ids)
    return merged


def _group_by_entry(error: ValidationError, entries: _Entries) -> _EntryErrors:
    """Return the errors by the entry that they concern; none if there is an error of something else."""
    grouped: dict[tuple[str, int], list[ErrorDetails]] = defaultdict(list)
    errors = error.errors(include_url=False, include_input=False)
    for details in errors:
        if is_consequence(details, errors):
            continue
        location = details["loc"]
        if details["type"] == ENTRY_ERROR:
            location = (details["ctx"]["key"], details["ctx"]["index"])
        if len(location) < 2 or location[0] not in entries or not isinstance(location[1], int):
            return {}
        key = str(location[0])
        positions = sorted(entries[key])
        if location[1] >= len(positions):
            # A cluster of the previous fleet, for which the rest of this file does not fit.
            return {}
        position = positions[location[1]]
        grouped[key, position].append({**details, "loc": (key, position, *location[2:])})
    return grouped


def _leave_out_access(key: str, value: Any, errors: Sequence[ErrorDetails]) -> Any | None:
    """Return the cluster's entry without its bad keys if they only concern the connection, else None."""
    bad_keys = {details["loc"][2] for details in errors if len(details["loc"]) > 2}
    concerns_access = bad_keys <= _ACCESS_KEYS and all(len(details["loc"]) > 2 for details in errors)
    if key != "clusters" or not concerns_access:
        return None
    kept = {name: each for name, each in value.items() if name not in bad_keys}
    return {**kept, "bootstrap": _NO_BOOTSTRAP} if "bootstrap" in bad_keys else kept


def _describe_problem(key: str, position: int, value: Any, errors: Sequence[ErrorDetails]) -> EntryProblem:
    has_bad_id = any(details["loc"][2:3] == ("id",) for details in errors)
    cluster_id = None if has_bad_id or key != "clusters" else _read_id(value)
    message = "; ".join(
        describe_value_error(details) if details["type"] == ENTRY_ERROR else describe_error(details)
        for details in errors
    )
    return EntryProblem(_PARTS[key], cluster_id or f"{key}.{position}", message, cluster_id)


def _read_id(value: Any) -> str | None:
    cluster_id = value.get("id") if isinstance(value, dict) else None
    return cluster_id if isinstance(cluster_id, str) else None
