"""What this client may do, against what Fleetgauge does."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fleetgauge_core.kafka import Rights, TopicSight, Unknown
from fleetgauge_probes.connection.check import Check, check, not_known

_TOPIC_WORDS = {
    "CREATE": "create",
    "DESCRIBE": "describe",
    "WRITE": "write",
    "READ": "read",
    "ALTER": "add partitions",
    "DESCRIBE_CONFIGS": "read settings",
    "ALTER_CONFIGS": "change settings",
}
_CLUSTER_WORDS = {"DESCRIBE": "see replicas being moved", "ALTER": "elect leaders and move replicas"}


@dataclass(frozen=True, slots=True)
class Uses:
    """The operations, in Kafka's words, that Fleetgauge uses on its topics and on the cluster itself."""

    topic: tuple[str, ...]
    cluster: tuple[str, ...] = ()


#: The agent in a cluster that it measures.
PROBING = Uses(
    ("DESCRIBE", "WRITE", "READ", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"), ("DESCRIBE", "ALTER")
)
#: Agent, stream and watch in the telemetry cluster.
TELEMETRY = Uses(("DESCRIBE", "WRITE", "READ"))
#: The agent alone in the telemetry cluster.
REPORTING = Uses(("DESCRIBE", "WRITE"))


@dataclass(frozen=True, slots=True)
class _Grant:
    """One operation on a topic, or on the cluster where ``topic`` is None; given, refused or not told."""

    operation: str
    topic: str | None
    given: bool | None

    @property
    def word(self) -> str:
        return (_TOPIC_WORDS if self.topic else _CLUSTER_WORDS)[self.operation]

    @property
    def option(self) -> str:
        """How kafka-acls.sh names it."""
        where = f"--topic {self.topic}" if self.topic else "--cluster"
        return f"--operation {option_name(self.operation)} {where}"


def option_name(operation: str) -> str:
    """An operation as kafka-acls.sh names it: ALTER_CONFIGS is AlterConfigs."""
    return "".join(part.capitalize() for part in operation.split("_"))


def rights(uses: Uses, seen: Rights | Unknown, topics: Sequence[TopicSight] | Unknown) -> Check:
    if isinstance(seen, Unknown):
        return not_known("rights", seen.reason)
    if seen.secured is False:
        return check("rights", ["no authorizer: everybody may do everything"], ())
    if isinstance(topics, Unknown):
        return not_known("rights", topics.reason)
    grants = [*_on_cluster(uses, seen), *_on_topics(uses, topics)]
    refused = [one for one in grants if one.given is False]
    if refused:
        missing = ", ".join(f"{one.word} ({one.topic or 'cluster'})" for one in refused)
        options = " and ".join(one.option for one in refused)
        return check(
            "rights", [f"may not {missing}"], [f"kafka-acls.sh --add --allow-principal ... {options}"]
        )
    if any(one.given is None for one in grants):
        return not_known("rights", f"not reported, whether it may {_words(grants, None)}")
    return check("rights", [f"may {_words(grants, True)}"], ())


def _on_cluster(uses: Uses, seen: Rights) -> Iterator[_Grant]:
    for operation in uses.cluster:
        yield _Grant(operation, None, None if seen.cluster is None else operation in seen.cluster)


def _on_topics(uses: Uses, topics: Sequence[TopicSight]) -> Iterator[_Grant]:
    """A dry run knows best whether a topic may be created: by the cluster's right or by its own."""
    for topic in topics:
        if topic.absent:
            yield _Grant("CREATE", topic.spec.name, not (topic.refusal and topic.refusal.denied))
        for operation in uses.topic:
            yield _Grant(operation, topic.spec.name, _given(operation, topic))


def _given(operation: str, topic: TopicSight) -> bool | None:
    """Any right on a topic shows it; of a hidden one the broker reports nothing."""
    if topic.operations is not None:
        return operation in topic.operations
    return False if topic.hidden else None


def _words(grants: Iterable[_Grant], given: bool | None) -> str:
    return ", ".join(dict.fromkeys(one.word for one in grants if one.given is given))
