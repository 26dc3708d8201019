"""Who answers: the bootstrap addresses, the brokers where they are advertised, with which version."""

from collections.abc import Iterable, Mapping, Set

from fleetgauge_core.kafka import (
    Knock,
    Registry,
    Reply,
    Sight,
    Silence,
    Unknown,
    Version,
)
from fleetgauge_probes.connection.check import Check, check, not_known

_MEND_BY_SILENCE = {
    Silence.NO_NAME: "correct the name, or make this machine's DNS know it",
    Silence.REFUSED: "nothing listens there: correct the port, or start the broker",
    Silence.TIMED_OUT: "a firewall or a wrong address: see that this machine may connect there",
    Silence.NO_WAY: "see that this machine has a route there",
    Silence.MUTE: "the broker hangs, or something else listens there",
    Silence.NOT_KAFKA: "name a listener of Kafka's",
    Silence.WANTS_TLS: "say `security: {tls: {}}`, or name a listener without TLS",
    Silence.NO_TLS: "leave `security.tls` out, or name a listener with TLS",
    Silence.CERTIFICATE_EXPIRED: "renew its certificate",
    Silence.CERTIFICATE_OF_ANOTHER_NAME: "give it a certificate for the name by which it is reached",
    Silence.CERTIFICATE_UNTRUSTED: "name its authority in `security.tls.ca`",
    Silence.OUR_CERTIFICATE_REFUSED: "see `security.tls.certificate`: is it good, and trusted there?",
}
#: From there on a broker that is down stays listed, as fenced.
_LISTS_FENCED = (4, 0)


def reachable(doors: Mapping[str, Knock]) -> Check:
    """Of the bootstrap addresses; one that is wrong is worth a word even while the others do."""
    answering = [address for address, knock in doors.items() if not isinstance(knock, Silence)]
    silent = {address: knock for address, knock in doors.items() if isinstance(knock, Silence)}
    told = [f"{', '.join(answering)} {'answers' if len(answering) == 1 else 'answer'}"] if answering else []
    told += [f"{address}: {silence.value}" for address, silence in silent.items()]
    return check("reachable", told, [_MEND_BY_SILENCE[silence] for silence in silent.values()])


def brokers(sights: Mapping[int, Sight] | Unknown, registry: Registry | Unknown, retired: Set[int]) -> Check:
    if isinstance(sights, Unknown):
        return Check(
            "brokers",
            False,
            f"it answers, but does not name its brokers: {sights.reason}",
            "see that `security` says what the listener asks for: who we are, by which password or token",
        )
    expected = {broker: sight for broker, sight in sorted(sights.items()) if broker not in retired}
    silent = {b: sight.knock for b, sight in expected.items() if isinstance(sight.knock, Silence)}
    fenced = _fenced(registry, retired)
    told = [", ".join(f"{broker} ({sight.rack or 'no rack'})" for broker, sight in expected.items())]
    told += [f"{b} advertises {expected[b].address}: {silence.value}" for b, silence in silent.items()]
    told += [f"{broker} is registered, but fenced" for broker in fenced]
    mends = []
    if mute := [broker for broker, silence in silent.items() if silence is Silence.MUTE]:
        mends.append(f"{_names(mute)} may hang")
    if astray := [broker for broker in silent if broker not in mute]:
        mends.append(f"see advertised.listeners of {_names(astray)}: it must be reachable from here")
    if fenced:
        mends.append(f"start {_names(fenced)}, or list it under `retired`")
    return check("brokers", told, mends)


def version(sights: Mapping[int, Sight] | Unknown) -> Check:
    """As the protocols of the brokers' answers show it."""
    if isinstance(sights, Unknown):
        return not_known("version", sights.reason)
    brokers_by_version: dict[Version, list[int]] = {}
    for broker, sight in sorted(sights.items()):
        if isinstance(sight.knock, Reply):
            brokers_by_version.setdefault(sight.knock.version, []).append(broker)
    if not brokers_by_version:
        return not_known("version", "no broker answers where it is advertised")
    told = [_text(one) for one in brokers_by_version]
    if len(told) > 1:
        told = [f"{_text(one)} on {_names(those)}" for one, those in sorted(brokers_by_version.items())]
    if min(brokers_by_version) < _LISTS_FENCED:
        told.append("before 4.0 a broker that is down is not listed")
    return check("version", told, ())


def _fenced(registry: Registry | Unknown, retired: Set[int]) -> list[int]:
    if isinstance(registry, Unknown):
        return []
    return sorted(b for b, one in registry.brokers.items() if one.fenced and b not in retired)


def _names(brokers: Iterable[int]) -> str:
    return " and ".join(f"broker {broker}" for broker in brokers)


def _text(version: Version) -> str:
    return ".".join(map(str, version))
