"""Detection of failed authentication through librdkafka, because kafka-python only logs it."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import build_librdkafka_settings
from fleetgauge_core.kafka.own_resources import explain_creation_errors
from fleetgauge_core.metadata import BrokerRegistration

#: So many brokers that refuse a login show that it is invalid, also in a cluster of hundreds.
_MAX_SURVEYED = 8
_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class LoginSurvey:
    """Which brokers of a cluster refused a new login, and which accepted one; others did not answer."""

    refused: frozenset[int] = frozenset()
    accepted: frozenset[int] = frozenset()

    @property
    def is_invalid(self) -> bool:
        """Whether the credentials are at fault: they were refused, and accepted nowhere."""
        return bool(self.refused) and not self.accepted


def find_authentication_error(access: ClusterAccess, timeout_s: float = _TIMEOUT_S) -> str | None:
    """Connect, and return the message if a broker rejects the user name, password or token; else None.

    Raises: KafkaUnavailableError if secrets cannot be read.
    """
    if not access.security.protocol.startswith("SASL"):
        return None
    _, refusal = _log_in(access, timeout_s)
    return refusal


def survey_logins(access: ClusterAccess, brokers: Mapping[int, BrokerRegistration]) -> LoginSurvey:
    """Log in to each of some brokers, all at once, and return what they answered within 2 s.

    Raises: KafkaUnavailableError if secrets cannot be read.
    """
    surveyed = dict(islice(sorted(brokers.items()), _MAX_SURVEYED))
    if not surveyed:
        return LoginSurvey()
    with explain_creation_errors(access), ThreadPoolExecutor(len(surveyed), "login") as executor:
        addresses = (f"{broker.host}:{broker.port}" for broker in surveyed.values())
        logins = executor.map(
            lambda address: _log_in(replace(access, bootstrap=address), _TIMEOUT_S), addresses
        )
        answers = dict(zip(surveyed, logins, strict=True))
    return LoginSurvey(
        frozenset(broker_id for broker_id, (_, refusal) in answers.items() if refusal),
        frozenset(
            broker_id for broker_id, (accepted, refusal) in answers.items() if accepted and not refusal
        ),
    )


def _log_in(access: ClusterAccess, timeout_s: float) -> tuple[bool, str | None]:
    """Return whether a broker lets the client log in, and the message of one that refuses."""
    errors: list[KafkaError] = []
    settings = client_settings.CONNECTION | build_librdkafka_settings(access) | {"error_cb": errors.append}
    with explain_creation_errors(access):
        client = AdminClient(settings)
    try:
        client.list_topics(timeout=timeout_s)
        accepted = True
    except KafkaException:
        accepted = False
    client.poll(0)
    messages = (error.str() for error in errors if error.code() == KafkaError._AUTHENTICATION)
    return accepted, next(messages, None)
