"""Checks of the bootstrap addresses, the advertised listeners and the Kafka version."""

from collections.abc import Iterable, Mapping, Set

from fleetgauge_core.kafka import (
    AdvertisedBroker,
    BrokerRegistry,
    ConnectionFailure,
    EndpointProbeResult,
    EndpointResponse,
    KafkaVersion,
    QueryFailure,
)
from fleetgauge_probes.connection.check import ConnectionCheck, build_check, build_unknown_check

_REMEDIES = {
    ConnectionFailure.HOST_NOT_FOUND: "correct the host name, or add it to the DNS that this machine uses",
    ConnectionFailure.CONNECTION_REFUSED: "correct the port, or start the broker: nothing listens there",
    ConnectionFailure.CONNECTION_TIMED_OUT: (
        "correct the address, or allow connections from this machine in the firewall"
    ),
    ConnectionFailure.HOST_UNREACHABLE: "add a network route from this machine to the address",
    ConnectionFailure.NO_RESPONSE: "restart the broker if it hangs; otherwise another service listens there",
    ConnectionFailure.NOT_KAFKA: "give the address of a Kafka listener",
    ConnectionFailure.TLS_REQUIRED: "set `security: {tls: {}}`, or give a listener without TLS",
    ConnectionFailure.TLS_NOT_SUPPORTED: "remove `security.tls`, or give a listener with TLS",
    ConnectionFailure.CERTIFICATE_EXPIRED: "renew the broker's certificate",
    ConnectionFailure.CERTIFICATE_NOT_YET_VALID: (
        "correct the clock of this machine, or the broker's certificate"
    ),
    ConnectionFailure.CERTIFICATE_HOSTNAME_MISMATCH: (
        "issue the broker a certificate for the host name by which it is reached"
    ),
    ConnectionFailure.CERTIFICATE_UNTRUSTED: "set `security.tls.ca` to the broker's certificate authority",
    ConnectionFailure.CLIENT_CERTIFICATE_REJECTED: (
        "check `security.tls.certificate`: it may have expired, or the broker may not trust its authority"
    ),
    ConnectionFailure.TLS_REFUSED: (
        "check the broker's keystore, TLS versions and cipher suites: it refuses the handshake"
    ),
    ConnectionFailure.OWN_RESOURCES: "raise the limits of this machine: open files, memory, local ports",
}
#: From this version on, a broker that is down is still listed, as fenced (KIP-1073).
_LISTS_FENCED_SINCE = (4, 0)


def check_bootstrap(results: Mapping[str, EndpointProbeResult]) -> ConnectionCheck:
    """Return a check that fails if any bootstrap address fails, even while others respond."""
    responding = [address for address, result in results.items() if not isinstance(result, ConnectionFailure)]
    failures = {
        address: result for address, result in results.items() if isinstance(result, ConnectionFailure)
    }
    facts = []
    if responding:
        facts.append(f"{', '.join(responding)} {'responds' if len(responding) == 1 else 'respond'}")
    facts += [f"{address}: {failure.description}" for address, failure in failures.items()]
    return build_check("reachable", facts, [_REMEDIES[failure] for failure in failures.values()])


def check_brokers(
    brokers: Mapping[int, AdvertisedBroker] | QueryFailure,
    registry: BrokerRegistry | QueryFailure,
    retired: Set[int],
) -> ConnectionCheck:
    """Return a check that fails if a broker that is not retired is fenced or does not respond."""
    if isinstance(brokers, QueryFailure):
        return ConnectionCheck(
            "brokers",
            False,
            f"the cluster responds but does not list its brokers: {brokers.reason}",
            "set `security` as the listener requires: the user and its password, or a token",
        )
    expected = {
        broker_id: broker for broker_id, broker in sorted(brokers.items()) if broker_id not in retired
    }
    failures = {
        broker_id: broker.probe_result
        for broker_id, broker in expected.items()
        if isinstance(broker.probe_result, ConnectionFailure)
    }
    fenced = _list_fenced(registry, retired)
    facts = [", ".join(f"{broker_id} ({broker.rack or 'no rack'})" for broker_id, broker in expected.items())]
    facts += [
        f"{broker_id} advertises {expected[broker_id].address}: {failure.description}"
        for broker_id, failure in failures.items()
    ]
    facts += [f"{broker_id} is registered but fenced" for broker_id in fenced]
    return build_check("brokers", facts, _list_broker_remedies(failures, fenced))


def _list_broker_remedies(failures: Mapping[int, ConnectionFailure], fenced: Iterable[int]) -> list[str]:
    remedies = []
    hanging = [
        broker_id for broker_id, failure in failures.items() if failure is ConnectionFailure.NO_RESPONSE
    ]
    if hanging:
        remedies.append(f"restart {_join_brokers(hanging)} if the process hangs")
    unreachable = [broker_id for broker_id in failures if broker_id not in hanging]
    if unreachable:
        remedies.append(
            f"correct advertised.listeners of {_join_brokers(unreachable)}: this machine cannot connect there"
        )
    if fenced:
        remedies.append(f"start {_join_brokers(fenced)}, or list it under `retired`")
    return remedies


def check_version(brokers: Mapping[int, AdvertisedBroker] | QueryFailure) -> ConnectionCheck:
    """Return a check that names the Kafka versions inferred from the brokers' ApiVersions responses."""
    if isinstance(brokers, QueryFailure):
        return build_unknown_check("version", brokers.reason)
    brokers_by_version: dict[KafkaVersion, list[int]] = {}
    for broker_id, broker in sorted(brokers.items()):
        if isinstance(broker.probe_result, EndpointResponse):
            brokers_by_version.setdefault(broker.probe_result.kafka_version, []).append(broker_id)
    if not brokers_by_version:
        return build_unknown_check("version", "no broker responds at its advertised address")
    facts = [_format_version(version) for version in brokers_by_version]
    if len(facts) > 1:
        facts = [
            f"{_format_version(version)} on {_join_brokers(broker_ids)}"
            for version, broker_ids in sorted(brokers_by_version.items())
        ]
    if min(brokers_by_version) < _LISTS_FENCED_SINCE:
        facts.append("before 4.0, a broker that is down is not listed")
    return build_check("version", facts, ())


def _list_fenced(registry: BrokerRegistry | QueryFailure, retired: Set[int]) -> list[int]:
    if isinstance(registry, QueryFailure):
        return []
    return sorted(
        broker_id
        for broker_id, broker in registry.brokers.items()
        if broker.fenced and broker_id not in retired
    )


def _join_brokers(broker_ids: Iterable[int]) -> str:
    return " and ".join(f"broker {broker_id}" for broker_id in broker_ids)


def _format_version(version: KafkaVersion) -> str:
    return ".".join(map(str, version))
