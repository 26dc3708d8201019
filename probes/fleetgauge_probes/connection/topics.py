"""Whether Fleetgauge's topics can be made, or are there and as it would make them."""

from collections.abc import Iterator, Sequence

from fleetgauge_core.kafka import TopicSight, TopicView, Unknown
from fleetgauge_probes.connection.check import Check, check, not_known

#: Other settings are a matter of taste, or the provider's.
_SETTINGS_THAT_MATTER = ("cleanup.policy", "min.insync.replicas", "retention.ms")


def topics(seen: Sequence[TopicSight] | Unknown) -> Check:
    if isinstance(seen, Unknown):
        return not_known("topics", seen.reason)
    told: dict[str, list[str]] = {}
    mends: list[str] = []
    for topic in seen:
        state, mend = _judge(topic)
        told.setdefault(state, []).append(topic.spec.name)
        mends += mend
    return check("topics", [f"{state}: {', '.join(names)}" for state, names in told.items()], mends)


def _judge(topic: TopicSight) -> tuple[str, list[str]]:
    """What is so, and what to do about it."""
    if topic.view:
        differences = dict(_differences(topic, topic.view))
        if differences:
            return f"not as we make it ({', '.join(differences)})", list(differences.values())
        return "there and as we make it", []
    if topic.hidden:
        return "hidden from us", []
    if topic.refusal and not topic.refusal.denied:
        told = (
            f"cannot be {'made' if topic.absent else 'seen'} ({topic.refusal.code}: {topic.refusal.message})"
        )
        return told, ["see that the cluster allows it"]
    return "not there yet, the agent makes it", []


def _differences(topic: TopicSight, view: TopicView) -> Iterator[tuple[str, str]]:
    name, wanted = topic.spec.name, topic.spec.settings
    for key in _SETTINGS_THAT_MATTER:
        if key in wanted and topic.settings.get(key, wanted[key]) != wanted[key]:
            yield (
                f"{key}={topic.settings[key]} instead of {wanted[key]}",
                f"kafka-configs.sh --alter --topic {name} --add-config {key}={wanted[key]}",
            )
    replicas = min((len(one.replicas) for one in view.partitions.values()), default=0)
    most = len(topic.spec.assignment[0]) if topic.spec.assignment else topic.spec.replication_factor
    if replicas < most:
        yield (
            f"replication factor {replicas} instead of {most}",
            f"if nothing else uses {name}, delete it: the agent makes it anew",
        )
