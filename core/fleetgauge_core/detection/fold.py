"""The fold: a pulse, or its absence, changes what is known of a cluster and may yield findings.

Each cluster is judged by itself. Time is the pulses' own, so that a backtest over history says what was
said live.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection.finding import (
    Chain,
    Finding,
    Phase,
    Subject,
    finding,
)
from fleetgauge_core.detection.presence import Presence, Sighting, is_gone
from fleetgauge_core.detection.signs import read_signs
from fleetgauge_core.detection.slowness import History, Slowness, measured
from fleetgauge_core.detection.thresholds import DEFAULT_THRESHOLDS, Thresholds
from fleetgauge_core.detection.vantages import Lone

#: As far apart as stored times can be told from each other.
_MOMENT = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One broker: whether it is there, and whether it is slow."""

    presence: Presence = field(default_factory=Presence)
    slowness: Slowness = field(default_factory=Slowness)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """One cluster: its brokers, from when to when it was heard of, and what else is found of it."""

    brokers: Mapping[int, BrokerState] = field(default_factory=dict)
    heard_since: datetime | None = None
    heard: datetime | None = None
    said: datetime | None = None
    """When the latest pulse was made; ``heard`` may be when one was expected from."""
    silent: bool = False
    turned: datetime | None = None
    """When it was last found to be silent, or heard again: what is found of that next is later."""
    down: bool = False
    down_at: datetime | None = None
    """The last time that all of it was."""
    lone: Lone = field(default_factory=Lone)

    def phases(self, cluster_id: str) -> dict[Subject, Phase]:
        """Everything that is not as it should be."""
        found: dict[Subject, Phase] = {}
        if self.silent:
            found[Subject(cluster_id, Chain.NO_DATA)] = Phase.NO_DATA
        if self.down:
            found[Subject(cluster_id, Chain.CLUSTER_DOWN)] = Phase.CLUSTER_DOWN
        for vantage in self.lone.ill:
            found[Subject(cluster_id, Chain.VANTAGE_ILL, vantage=vantage)] = Phase.VANTAGE_ILL
        for vantage, broker_id in self.lone.paths:
            found[Subject(cluster_id, Chain.PATH, vantage=vantage, towards=broker_id)] = Phase.PATH
        for broker_id, one in self.brokers.items():
            if one.presence.phase is not Phase.HEALTHY:
                found[Subject(cluster_id, Chain.BROKER_DOWN, broker_id)] = one.presence.phase
            if one.slowness.named:
                found[Subject(cluster_id, Chain.DEGRADED, broker_id)] = Phase.DEGRADED
        return found

    def evidence(self, subject: Subject, before: "ClusterState", at: datetime) -> dict[str, object]:
        """What speaks for what is found, by vantage where vantages speak."""
        match subject.chain:
            case Chain.BROKER_DOWN if subject.broker_id is not None:
                known = before.broker(subject.broker_id).presence
                since = at if known.phase is Phase.HEALTHY else known.since or at
                vantages = self.broker(subject.broker_id).presence.evidence()
                peers = self._peers(subject.broker_id)
                return {"since": since.isoformat(), "vantages": vantages, "peers": peers}
            case Chain.DEGRADED if subject.broker_id is not None:
                slowness = self.broker(subject.broker_id).slowness.evidence()
                return slowness | {"peers": self._peers(subject.broker_id)}
            case Chain.PATH if subject.towards is not None:
                vantages = self.broker(subject.towards).presence.evidence()
                return {"vantage": subject.vantage, "broker": subject.towards, "vantages": vantages}
            case Chain.VANTAGE_ILL if subject.vantage is not None:
                return {"vantage": subject.vantage, "brokers": self.lone.unreached(subject.vantage)}
            case Chain.CLUSTER_DOWN:
                return {"brokers": len(self.brokers)}
            case _:
                return {"heard": before.heard.isoformat() if before.heard else None}

    def _peers(self, broker_id: int) -> dict[str, object]:
        """How many it has, and who of them is named."""
        peers = {other: one for other, one in self.brokers.items() if other != broker_id}
        named = [other for other, one in peers.items() if one.presence.phase.names or one.slowness.named]
        return {"brokers": len(peers), "named": sorted(named)}

    def broker(self, broker_id: int) -> BrokerState:
        """As it stands; as one that nothing is known of, if it was never seen or has left."""
        return self.brokers.get(broker_id, BrokerState())


@dataclass(frozen=True, slots=True)
class FleetState:
    """Everything the fold remembers, by cluster."""

    clusters: Mapping[str, ClusterState] = field(default_factory=dict)

    def open_findings(self) -> tuple[tuple[Subject, Phase], ...]:
        """What is named now, and as what."""
        found = (pair for cluster_id, one in self.clusters.items() for pair in one.phases(cluster_id).items())
        named = ((subject, phase) for subject, phase in found if phase.names)
        return tuple(sorted(named, key=lambda pair: [str(one) for one in pair[0]]))

    def is_silent(self, cluster_id: str, now: datetime, limits: Thresholds = DEFAULT_THRESHOLDS) -> bool:
        """Whether nothing was heard of it for so long that it is missed."""
        heard = self.clusters[cluster_id].heard
        return heard is None or now - heard >= limits.no_data


class HistoryOf(NamedTuple):
    """Whose, and as seen from where."""

    cluster_id: str
    broker_id: int
    vantage: str


def remember(
    findings: Iterable[Finding], histories: Mapping[HistoryOf, History] = MappingProxyType({})
) -> FleetState:
    """The state that a watch left behind: what it found, in order, and what each broker usually takes."""
    clusters: dict[str, ClusterState] = {}
    for one in findings:
        cluster_id = one.subject.cluster_id
        clusters[cluster_id] = _restored(clusters.get(cluster_id, ClusterState()), one)
    for (cluster_id, broker_id, vantage), history in histories.items():
        known = clusters.get(cluster_id, ClusterState())
        broker = known.broker(broker_id)
        broker = replace(broker, slowness=broker.slowness.used_to(vantage, history))
        clusters[cluster_id] = replace(known, brokers={**known.brokers, broker_id: broker})
    return FleetState(clusters)


def adopt(state: FleetState, found: Finding) -> FleetState:
    """With what another watch named and this one learnt of too late to remember it.

    It holds until what is heard says otherwise, so that whoever was told is told of its end. What burns a
    budget is not heard here: of that nothing changes.
    """
    if not found.names or found.subject in dict(state.open_findings()):
        return state
    cluster_id = found.subject.cluster_id
    known = state.clusters.get(cluster_id, ClusterState())
    after = _restored(known, found)
    return state if after is known else FleetState({**state.clusters, cluster_id: after})


def learnt(before: FleetState, after: FleetState, pulse: ProbePulse) -> Iterator[tuple[HistoryOf, History]]:
    """What brokers usually take, where the pulse has changed it: ``remember`` wants it back."""
    known, now = (state.clusters.get(pulse.cluster_id, ClusterState()) for state in (before, after))
    for broker_id, one in now.brokers.items():
        history = one.slowness.history(pulse.vantage)
        if history != known.broker(broker_id).slowness.history(pulse.vantage):
            yield HistoryOf(pulse.cluster_id, broker_id, pulse.vantage), history


def _restored(known: ClusterState, found: Finding) -> ClusterState:
    stands, subject = found.to_phase is not Phase.HEALTHY, found.subject
    evidence = json.loads(found.event.evidence)
    match subject.chain:
        case Chain.NO_DATA:
            return replace(known, silent=stands, turned=found.event.at)
        case Chain.CLUSTER_DOWN:
            return replace(known, down=stands)
        case Chain.VANTAGE_ILL if subject.vantage is not None:
            return replace(
                known,
                lone=known.lone.restored(
                    subject.vantage, evidence.get("brokers", ()), ill=True, stands=stands
                ),
            )
        case Chain.PATH if subject.vantage is not None and subject.towards is not None:
            return replace(
                known, lone=known.lone.restored(subject.vantage, [subject.towards], ill=False, stands=stands)
            )
        case _ if subject.broker_id is None:
            return known
    broker = known.broker(subject.broker_id)
    if subject.chain is Chain.DEGRADED:
        broker = replace(
            broker, slowness=broker.slowness.restored(named=stands, slow=evidence.get("slow", "most"))
        )
    else:
        broker = replace(broker, presence=_restored_presence(broker.presence, found.to_phase, found.event.at))
    return replace(known, brokers={**known.brokers, subject.broker_id: broker})


def _restored_presence(known: Presence, phase: Phase, at: datetime) -> Presence:
    if phase.names and not known.phase.names:
        known = known.with_naming(at)
    since = known.since if phase.names and known.phase.names else at
    return Presence(phase, since, known.namings)


def judge(
    state: FleetState, pulse: ProbePulse, limits: Thresholds = DEFAULT_THRESHOLDS
) -> tuple[FleetState, tuple[Finding, ...]]:
    """Fold one pulse in. Pure; a broker that no vantage mentions any more has left the cluster."""
    known = state.clusters.get(pulse.cluster_id, ClusterState())
    # One whose clock is behind speaks of now all the same, and not of before the others spoke.
    at = max(pulse.emitted_at, known.said or pulse.emitted_at)
    before, missed = _missed(pulse.cluster_id, known, at, limits)
    mentioned = frozenset(one.broker_id for one in pulse.brokers)
    after = _judged(_heard(before, pulse, at, limits), mentioned, at, limits)
    findings = _changes(pulse.cluster_id, before, after, at)
    return FleetState({**state.clusters, pulse.cluster_id: after}), (*missed, *findings)


def pass_time(
    state: FleetState, now: datetime, limits: Thresholds = DEFAULT_THRESHOLDS
) -> tuple[FleetState, tuple[Finding, ...]]:
    """Time has passed: of which clusters no vantage has said anything for too long."""
    clusters = dict(state.clusters)
    findings: list[Finding] = []
    for cluster_id, one in state.clusters.items():
        clusters[cluster_id], missed = _missed(cluster_id, one, now, limits)
        findings += missed
    return FleetState(clusters), tuple(findings)


def _missed(
    cluster_id: str, known: ClusterState, now: datetime, limits: Thresholds
) -> tuple[ClusterState, Sequence[Finding]]:
    """Silent by now, as of when that was due, whenever somebody looks: a replay finds the same."""
    if known.heard is None or known.silent or now - known.heard < limits.no_data:
        return known, ()
    due = _turned(known, known.heard + limits.no_data)
    silent = replace(known, silent=True, turned=due)
    return silent, tuple(_changes(cluster_id, known, silent, due))


def retire(
    state: FleetState, gone: Callable[[str], bool], now: datetime
) -> tuple[FleetState, tuple[Finding, ...]]:
    """Without the clusters that are not watched any more: what was found of them is over."""
    kept = {one: known for one, known in state.clusters.items() if not gone(one)}
    if len(kept) == len(state.clusters):
        return state, ()
    left = [(one, known) for one, known in state.clusters.items() if one not in kept]
    over = (_changes(cluster_id, known, ClusterState(), now) for cluster_id, known in left)
    return FleetState(kept), tuple(chain.from_iterable(over))


def expect(state: FleetState, clusters: Iterable[str], now: datetime) -> FleetState:
    """As if each of them had been heard of just now: one that never is, is missed then."""
    heard = {one: replace(state.clusters.get(one, ClusterState()), heard=now) for one in clusters}
    return FleetState({**state.clusters, **heard})


def rewound(state: FleetState, now: datetime) -> FleetState:
    """By a clock that was set back to ``now``: without all that is dated, which would lie ahead for long.

    What is named, and what brokers usually take, is kept, as by a watch that starts anew.
    """
    return FleetState({cluster_id: _undated(one, now) for cluster_id, one in state.clusters.items()})


def _undated(known: ClusterState, now: datetime) -> ClusterState:
    brokers = {
        broker_id: BrokerState(one.presence.undated(now), one.slowness.undated())
        for broker_id, one in known.brokers.items()
    }
    return replace(known, brokers=brokers, heard_since=None, heard=now, said=None, down_at=None)


def _heard(known: ClusterState, pulse: ProbePulse, at: datetime, limits: Thresholds) -> ClusterState:
    brokers, took = dict(known.brokers), measured(pulse, limits)
    for one in pulse.brokers:
        before = brokers.get(one.broker_id, BrokerState())
        signs = read_signs(one, limits)
        # What waited for a broker that was down is late, which is no second finding.
        pace = None if before.presence.phase.names else took.get(one.broker_id)
        brokers[one.broker_id] = BrokerState(
            before.presence.heard(pulse.vantage, at, signs, limits),
            before.slowness.after(pulse.vantage, at, pace, limits),
        )
    if not pulse.brokers and not known.down:
        # Of an agent that reaches no broker: it says nothing of the cluster.
        return replace(known, heard=known.heard or at, said=at)
    since = known.heard_since if known.heard_since and not known.silent else at
    heard = max(at, known.heard or at)
    turned = _turned(known, at) if known.silent else known.turned
    return replace(
        known, brokers=brokers, heard_since=since, heard=heard, said=at, silent=False, turned=turned
    )


def _turned(known: ClusterState, at: datetime) -> datetime:
    """A pulse that comes late ends a silence, though not before it began; whoever reads both goes by that."""
    return max(at, known.turned + _MOMENT) if known.turned else at


def _judged(seen: ClusterState, mentioned: Set[int], now: datetime, limits: Thresholds) -> ClusterState:
    sights = {broker_id: one.presence.fresh(now, limits) for broker_id, one in seen.brokers.items()}
    gone = [is_gone(of_broker) for of_broker in sights.values() if of_broker]
    # Whoever is heard first after a pause may be the one vantage that is wrong.
    settled = seen.heard_since is not None and now - seen.heard_since >= limits.settled
    # An agent that starts meanwhile knows no broker: what is down is so until one of its brokers answers.
    down = all(gone) and (seen.down or (settled and len(gone) > 1))
    down_at = now if down else seen.down_at
    # Its brokers come back one after the other.
    coming_back = down_at is not None and now - down_at < 2 * limits.settled
    may_name = settled and not coming_back
    heard = {vantage for one in seen.brokers.values() for vantage in one.presence.sightings}
    lone = seen.lone.of(heard) if _knows_all(seen, now, limits) else seen.lone
    lone = lone.after(sights, heard, limits)
    alone = lone.by_broker()
    brokers = {}
    for broker_id, one in seen.brokers.items():
        if broker_id in mentioned:
            counting = _without(sights[broker_id], alone.get(broker_id, frozenset()))
            presence = one.presence.judged(counting, now, limits, may_name=may_name)
            brokers[broker_id] = one if presence is one.presence else BrokerState(presence, one.slowness)
        elif sights[broker_id] or not mentioned or not _knows_all(seen, now, limits):
            brokers[broker_id] = one
    return replace(seen, brokers=brokers, down=down, down_at=down_at, lone=lone)


def _without(sights: Mapping[str, Sighting], vantages: Set[str]) -> Mapping[str, Sighting]:
    return (
        {vantage: one for vantage, one in sights.items() if vantage not in vantages} if vantages else sights
    )


def _knows_all(cluster: ClusterState, now: datetime, limits: Thresholds) -> bool:
    """Whether a broker that nobody mentions has left: even one that is down is registered until removed."""
    return cluster.heard_since is not None and not limits.are_fresh(cluster.heard_since, now)


def _changes(cluster_id: str, before: ClusterState, after: ClusterState, at: datetime) -> Iterator[Finding]:
    was, now = before.phases(cluster_id), after.phases(cluster_id)
    changed = (one for one in was.keys() | now.keys() if was.get(one) is not now.get(one))
    for subject in sorted(changed, key=lambda one: [str(part) for part in one]):
        phases = (was.get(subject, Phase.HEALTHY), now.get(subject, Phase.HEALTHY))
        when = after.turned or at if subject.chain is Chain.NO_DATA else at
        yield finding(subject, *phases, when, after.evidence(subject, before, at))
