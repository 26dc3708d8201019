"""What a watch has stored in its topics, in memory: it is written again when a topic was deleted."""

from collections.abc import Callable
from threading import RLock

from fleetgauge_core.detection import Finding
from fleetgauge_core.kafka import ClusterAdmin, TopicMetadata
from fleetgauge_core.metadata import ConfirmedTopicId


class StateCopy:
    """The latest state record of each key, and the latest finding of each subject. Used by several threads.

    It outlives a leadership, because the deletion of the topic that elects the leader ends that.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        """Held while a record is copied and sent, so that an older one is never sent after a newer one."""
        self.records: dict[str, bytes] = {}
        self.findings: dict[str, Finding] = {}
        """By fingerprint."""
        self._topic_ids: dict[str, str] = {}

    def adopt_topic(self, name: str, topic_id: str) -> bool:
        """Return whether the topic is another one than before, which therefore lacks what this copy has."""
        with self.lock:
            before, self._topic_ids[name] = self._topic_ids.get(name), topic_id
        return before is not None and before != topic_id

    def topic_id(self, name: str) -> str | None:
        """Return the ID of the topic that was adopted last, None before the first."""
        with self.lock:
            return self._topic_ids.get(name)

    def clear(self) -> None:
        """Forget everything: another watch may have stored newer state."""
        with self.lock:
            self.records.clear()
            self.findings.clear()
            self._topic_ids.clear()


class RecreationFollower:
    """Calls ``restore`` whenever a topic has been recreated."""

    def __init__(self, topic: str, state_copy: StateCopy, restore: Callable[[], None]) -> None:
        self.topic = topic
        self._copy = state_copy
        self._restore = restore
        self._identity = ConfirmedTopicId(state_copy.topic_id(topic))

    def check(self, topic: TopicMetadata | None, _: ClusterAdmin) -> None:
        """Take note of the topic, None if it does not exist.

        Raises: KafkaUnavailableError if the store has stopped; the next leadership restores it.
        """
        if not self._identity.check(topic.topic_id if topic else None) or topic is None:
            return
        if self._copy.topic_id(self.topic) not in (None, topic.topic_id):
            self._restore()
        self._copy.adopt_topic(self.topic, topic.topic_id)
