"""What cold questions to the brokers of one cluster met."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime

from fleetgauge_core.kafka import Answer, Registration, Silence
from fleetgauge_probes.agent.process_pauses import Stalls

_log = logging.getLogger("fleetgauge.probe")

#: Three unanswered tries in a row.
_FRESH_NS = 3_000_000_000


class Answers:
    """By broker; its owner guards it."""

    def __init__(self, cluster_id: str, stalls: Stalls) -> None:
        self._cluster_id = cluster_id
        self._stalls = stalls
        self._answers: dict[int, Answer] = {}
        self._silences: dict[int, Silence] = {}
        self._outcomes: Counter[tuple[int, str]] = Counter()

    def note(self, broker: Registration, met: Answer | Silence) -> None:
        """A change is worth a line in the log."""
        before = self._silences.pop(broker.broker_id, None)
        if isinstance(met, Answer):
            self._answers[broker.broker_id] = met
            self._outcomes[broker.broker_id, "answered"] += 1
            if before:
                _log.info("%s: broker %d answers again", self._cluster_id, broker.broker_id)
            return
        self._silences[broker.broker_id] = met
        self._outcomes[broker.broker_id, met.name.lower()] += 1
        if met is not before:
            where = (broker.broker_id, broker.host, broker.port)
            _log.warning("%s: broker %d at %s:%d: %s", self._cluster_id, *where, met.value)

    def last(self, broker_id: int) -> Answer | None:
        return self._answers.get(broker_id)

    def silence(self, broker_id: int) -> Silence | None:
        """What the last question met, if not an answer."""
        return self._silences.get(broker_id)

    def is_answering(self, broker_id: int, now_ns: int) -> bool:
        """Whether it has answered within 3 s; while this process did not run nobody could answer it."""
        answer = self._answers.get(broker_id)
        if answer is None:
            return False
        age_ns = now_ns - answer.at_ns
        return age_ns < _FRESH_NS or age_ns - self._stalls.within_ns(answer.at_ns, now_ns) < _FRESH_NS

    def take_outcomes(self) -> Mapping[tuple[int, str], int]:
        """How many questions to which broker met what, since this was last asked."""
        outcomes, self._outcomes = self._outcomes, Counter()
        return outcomes

    def certificate_ends(self, brokers: Collection[int]) -> dict[int, datetime]:
        """Until when those of these brokers are good that have shown one."""
        last = {broker_id: answer for broker_id, answer in self._answers.items() if broker_id in brokers}
        return {b: answer.certificate_ends for b, answer in last.items() if answer.certificate_ends}
