"""Execution of actions and of their undo.

Before each step the cluster is read and the fail-safes are checked again; after the last one, the result is
verified. The case is in the audit log before anything is changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.metadata import ClusterMetadata, TopicPartition
from fleetgauge_operations.mitigation.case import (
    Action,
    ActionRequest,
    CaseOutcome,
    MitigationCase,
    ReplicaOrder,
)
from fleetgauge_operations.mitigation.demotion import Restoration, plan_demotion, plan_restoration
from fleetgauge_operations.mitigation.fail_safes import (
    Refusal,
    RefusalReason,
    find_refusals,
    find_undo_refusals,
)
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.restarts import (
    check_in_sync,
    check_quarantined,
    check_restarted,
    plan_throttles,
)
from fleetgauge_operations.mitigation.snapshot import ClusterSnapshot

#: Metadata shows an election within milliseconds.
_ELECTION_TIMEOUT = timedelta(seconds=5)
#: A broker starts within a minute, and catches up at the speed of its disk and network.
_RESTART_TIMEOUT = timedelta(minutes=5)
#: A killed broker remains registered until its session expires, by default after 9 s.
_RESTARTED_FOR = timedelta(seconds=30)
#: Every restarted broker is out of sync for a moment.
_QUARANTINED_FOR = timedelta(seconds=30)
_VERIFY_INTERVAL_S = 0.5
_MINUTE_S = 60.0


class RestartCommandError(Exception):
    """The command that restarts a broker failed; the message is one line."""


class ClusterControl(Protocol):
    """The changes to a cluster. All methods raise KafkaUnavailableError."""

    def set_demotion_mark(self, broker_id: int, *, demoted: bool) -> None:
        """Tell the cluster's agents whether to leave the broker's probe partition to other leaders."""

    def reorder_replicas(
        self,
        orders: Mapping[TopicPartition, Sequence[int]],
        expected: Mapping[TopicPartition, ReplicaOrder],
    ) -> None:
        """Change the order of replicas if all partitions have one of the expected orders, else nothing."""

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect the first replicas as leaders."""

    def throttle_replication(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        """Throttle the broker's replication of these replicas, which are by topic."""

    def remove_throttle(self, broker_id: int, replicas: Mapping[str, str], *, registered: bool) -> None:
        """Remove the throttle; settings that were changed since are left unchanged."""

    def restart_broker(self, broker_id: int) -> None:
        """Run the restart command. Raises: RestartCommandError if it fails."""


class CaseWriter(Protocol):
    """Storage for cases, which is written before and after each change."""

    def add_case(self, case: MitigationCase) -> None:
        """Store a new case."""

    def update_case(self, case: MitigationCase) -> None:
        """Replace the stored case that has the same ID."""


#: Refusals that an action's own first step causes; ignored when the fail-safes are checked again.
_SELF_CAUSED = {
    Action.DEMOTE: RefusalReason.NOTHING_TO_TAKE,
    Action.QUARANTINE_RESTART: RefusalReason.THROTTLED,
}


class UndoRefusedError(Exception):
    """Fail-safes refused the undo, and nothing was changed."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("; ".join(refusal.explanation for refusal in refusals))
        self.refusals = tuple(refusals)


class _ActionAbortedError(Exception):
    """The action must not continue; the message says why."""


@dataclass(frozen=True, slots=True)
class ActionExecutor:
    """Applies and undoes actions on the brokers of one cluster.

    ``observe`` returns a snapshot without the case of that ID; ``is_leader`` is whether this process still
    has the mitigation leadership, without which nothing is changed.
    """

    observe: Callable[[str], ClusterSnapshot]
    cluster: ClusterControl
    case_writer: CaseWriter
    is_leader: Callable[[], bool]
    clock: Callable[[], datetime]
    wait: Callable[[float], object]
    limits: Limits = DEFAULT_LIMITS

    def apply(
        self,
        request: ActionRequest,
        case_id: str,
        author: str,
        reason: str,
        notified: tuple[str, ...] | None = None,
    ) -> MitigationCase:
        """Apply an action unless a fail-safe refuses it, and return its case.

        What an undo needs is stored before anything changes. ``notified`` becomes the ``told`` of the case:
        empty if receivers are to be notified of the case.

        Raises: KafkaUnavailableError if the cluster cannot be read, and the error of a failed write; nothing
        was changed then.
        """
        snapshot = self.observe(case_id)
        case = MitigationCase(
            case_id=case_id,
            action=request.action,
            cluster_id=request.cluster_id,
            broker_id=request.broker_id,
            zone=snapshot.zone(request.broker_id),
            author=author,
            reason=reason,
            began=self.clock(),
            outcome=CaseOutcome.BEGUN,
            told=notified,
        )
        refusals = find_refusals(request, snapshot, case.began, self.limits)
        if refusals:
            case = replace(
                case,
                outcome=CaseOutcome.REFUSED,
                ended=case.began,
                against=tuple(refusal.reason for refusal in refusals),
                words=tuple(refusal.explanation for refusal in refusals),
            )
            self.case_writer.add_case(case)
            return case
        match request.action:
            case Action.DEMOTE:
                case = replace(case, orders=plan_demotion(snapshot.metadata, request.broker_id))
            case Action.QUARANTINE_RESTART:
                case = replace(case, throttles=plan_throttles(snapshot.metadata, request.broker_id))
        self.case_writer.add_case(case)
        try:
            self._execute(request, case)
        except Exception as error:
            # The cluster may have been changed, whatever the error is.
            return self._close_case(replace(case, outcome=CaseOutcome.FAILED, words=(_format_error(error),)))
        ended = None if case.action.has_lasting_effect else self.clock()
        return self._close_case(replace(case, outcome=CaseOutcome.DONE, ended=ended))

    def undo(self, case: MitigationCase, reason: str | None) -> MitigationCase:
        """Undo an action, and return its case: undone, or failed if the undo has to be repeated.

        ``reason`` is an operator's own. The start of the undo is stored before anything is changed.

        Raises: UndoRefusedError; KafkaUnavailableError if the cluster cannot be read, and the error of a
        failed write. Nothing was changed then.
        """
        snapshot = self.observe(case.case_id)
        restoration = plan_restoration(snapshot.metadata, case.orders)
        refusals = find_undo_refusals(case, restoration, snapshot, reason)
        if refusals:
            raise UndoRefusedError(refusals)
        # An operator who closes a failed case does not overrule the decision to act.
        overruled = reason is not None and (case.outcome is CaseOutcome.DONE or case.overruled)
        case = replace(
            case,
            told=None if case.told is None else (),
            undone_since=self.clock(),
            overruled=overruled,
        )
        self.case_writer.update_case(case)
        words = (*((f"undone: {reason}",) if reason else ()), *_describe_kept(restoration))
        try:
            if case.broker_id in snapshot.metadata.brokers:
                words += self._revert(case, restoration, reason)
            else:
                words += self._clean_up_after_removed_broker(case)
        except Exception as error:
            return self._close_case(
                replace(case, outcome=CaseOutcome.FAILED, words=(_format_error(error), *words))
            )
        return self._close_case(replace(case, outcome=CaseOutcome.UNDONE, ended=self.clock(), words=words))

    def _execute(self, request: ActionRequest, case: MitigationCase) -> None:
        match request.action:
            case Action.DEMOTE:
                self._demote(request, case)
            case Action.QUARANTINE_RESTART:
                self._quarantine(request, case)
            case Action.RESTART:
                self._restart(case)
            case Action.EVACUATE:
                raise AssertionError("an evacuation is always refused")

    def _revert(self, case: MitigationCase, restoration: Restoration, reason: str | None) -> tuple[str, ...]:
        """Undo the changes; return further explanations for the case."""
        match case.action:
            case Action.DEMOTE:
                return self._restore_leadership(case, restoration, reason)
            case Action.QUARANTINE_RESTART:
                return self._end_quarantine(case)
            case _:
                # A restart changed nothing that lasts: the case is closed once the broker works.
                self._verify_restarted(case)
        return ()

    def _clean_up_after_removed_broker(self, case: MitigationCase) -> tuple[str, ...]:
        """Remove the mark or throttle of a broker that is not registered any more."""
        self._require_leadership()
        match case.action:
            case Action.DEMOTE:
                self.cluster.set_demotion_mark(case.broker_id, demoted=False)
            case Action.QUARANTINE_RESTART:
                self.cluster.remove_throttle(case.broker_id, case.throttles, registered=False)
        return (f"broker {case.broker_id} is not registered any more: nothing is returned to it",)

    def _demote(self, request: ActionRequest, case: MitigationCase) -> None:
        self._require_leadership()
        self.cluster.set_demotion_mark(case.broker_id, demoted=True)
        orders = {partition: order.after for partition, order in case.orders.items()}
        self.cluster.reorder_replicas(orders, case.orders)
        led = self._check_again(request, case).led_by(case.broker_id)
        self._require_leadership()
        self.cluster.elect_preferred_leaders(sorted(led))
        self._verify(case, lambda metadata: _check_demoted(metadata, case), _ELECTION_TIMEOUT)

    def _restore_leadership(
        self, case: MitigationCase, restoration: Restoration, reason: str | None
    ) -> tuple[str, ...]:
        first, *later = restoration.split_into_batches(case.broker_id, self.limits.max_led_per_minute)
        self._restore_batch(case, first)
        words: tuple[str, ...] = ()
        for batch in later:
            self.wait(_MINUTE_S)
            remaining = self._plan_remaining(case, batch.orders, reason)
            self._restore_batch(case, remaining)
            words += _describe_kept(remaining)
        self.cluster.set_demotion_mark(case.broker_id, demoted=False)
        return words

    def _plan_remaining(
        self, case: MitigationCase, partitions: Iterable[TopicPartition], reason: str | None
    ) -> Restoration:
        """Plan a batch from a new snapshot, and check the fail-safes of the undo again."""
        snapshot = self.observe(case.case_id)
        restoration = plan_restoration(
            snapshot.metadata, {partition: case.orders[partition] for partition in partitions}
        )
        refusals = find_undo_refusals(case, restoration, snapshot, reason)
        if refusals:
            raise _ActionAbortedError("; ".join(refusal.explanation for refusal in refusals))
        return restoration

    def _restore_batch(self, case: MitigationCase, restoration: Restoration) -> None:
        self._require_leadership()
        self.cluster.reorder_replicas(restoration.orders, case.orders)
        self.cluster.elect_preferred_leaders(restoration.led_by(case.broker_id))
        self._verify(
            case,
            lambda metadata: _check_restored(metadata, case.broker_id, restoration.orders),
            _ELECTION_TIMEOUT,
        )

    def _quarantine(self, request: ActionRequest, case: MitigationCase) -> None:
        self._require_leadership()
        self.cluster.throttle_replication(case.broker_id, case.throttles)
        self._check_again(request, case)
        self._require_leadership()
        self.cluster.restart_broker(case.broker_id)
        self._verify(
            case,
            lambda metadata: check_quarantined(metadata, case.broker_id),
            _RESTART_TIMEOUT,
            holds=_QUARANTINED_FOR,
        )

    def _restart(self, case: MitigationCase) -> None:
        self._require_leadership()
        self.cluster.restart_broker(case.broker_id)
        self._verify_restarted(case)

    def _verify_restarted(self, case: MitigationCase) -> None:
        self._verify(
            case,
            lambda metadata: check_restarted(metadata, case.broker_id),
            _RESTART_TIMEOUT,
            holds=_RESTARTED_FOR,
        )

    def _end_quarantine(self, case: MitigationCase) -> tuple[str, ...]:
        """Remove the throttle; a broker that has not caught up after five minutes is not a failure."""
        self._require_leadership()
        self.cluster.remove_throttle(case.broker_id, case.throttles, registered=True)
        try:
            self._verify(case, lambda metadata: check_in_sync(metadata, case.broker_id), _RESTART_TIMEOUT)
        except _ActionAbortedError as error:
            return (f"{error}; it continues to catch up",)
        return ()

    def _check_again(self, request: ActionRequest, case: MitigationCase) -> ClusterMetadata:
        """Return new metadata after the first step. Raises: _ActionAbortedError for any new refusal."""
        snapshot = self.observe(case.case_id)
        refusals = [
            refusal
            for refusal in find_refusals(request, snapshot, self.clock(), self.limits)
            if refusal.reason is not _SELF_CAUSED[request.action]
        ]
        if refusals:
            raise _ActionAbortedError("; ".join(refusal.explanation for refusal in refusals))
        return snapshot.metadata

    def _verify(
        self,
        case: MitigationCase,
        check: Callable[[ClusterMetadata], str],
        timeout: timedelta,
        holds: timedelta = timedelta(0),
    ) -> None:
        """Wait until the check has found no problem for a duration.

        Raises: _ActionAbortedError if it finds one after the timeout.
        """
        deadline, verified_since = self.clock() + timeout, None
        while True:
            problem, now = self._find_problem(case, check), self.clock()
            if problem and now >= deadline:
                raise _ActionAbortedError(f"{problem} after {timeout.total_seconds():.0f} s")
            verified_since = None if problem else verified_since or now
            if verified_since and now - verified_since >= holds:
                return
            self.wait(_VERIFY_INTERVAL_S)

    def _find_problem(self, case: MitigationCase, check: Callable[[ClusterMetadata], str]) -> str:
        """Return the check's result; a failed read is a problem too, as a restart may interrupt it."""
        try:
            return check(self.observe(case.case_id).metadata)
        except KafkaUnavailableError as error:
            return str(error)

    def _require_leadership(self) -> None:
        if not self.is_leader():
            raise _ActionAbortedError(
                "this process has lost the mitigation leadership; another one may be acting"
            )

    def _close_case(self, case: MitigationCase) -> MitigationCase:
        """Store the result; if that fails, add the error to the case that is reported."""
        try:
            self.case_writer.update_case(case)
        except Exception as error:
            return replace(case, words=(*case.words, f"not stored in ops/actions: {_format_error(error)}"))
        return case


def _describe_kept(restoration: Restoration) -> tuple[str, ...]:
    return tuple(
        f"{partition.topic}-{partition.partition} {explanation}"
        for partition, explanation in sorted(restoration.kept.items())
    )


def _format_error(error: Exception) -> str:
    is_one_line = isinstance(error, KafkaUnavailableError | RestartCommandError | _ActionAbortedError)
    return str(error) if is_one_line else f"{type(error).__name__}: {error}"


def _check_demoted(metadata: ClusterMetadata, case: MitigationCase) -> str:
    """Return why the demotion is not complete yet; an empty string if it is."""
    led = metadata.led_by(case.broker_id)
    if led:
        return f"broker {case.broker_id} still leads {len(led)} partitions"
    return _check_orders(metadata, {partition: order.after for partition, order in case.orders.items()})


def _check_restored(
    metadata: ClusterMetadata, broker_id: int, orders: Mapping[TopicPartition, Sequence[int]]
) -> str:
    to_lead = [partition for partition, replicas in orders.items() if replicas[0] == broker_id]
    missing = set(to_lead) - metadata.led_by(broker_id)
    if missing:
        return f"broker {broker_id} does not lead {len(missing)} of {len(to_lead)} partitions again"
    return _check_orders(metadata, orders)


def _check_orders(metadata: ClusterMetadata, orders: Mapping[TopicPartition, Sequence[int]]) -> str:
    different = sum(
        _read_order(metadata, partition) != tuple(replicas) for partition, replicas in orders.items()
    )
    return f"{different} partitions have another order of replicas" if different else ""


def _read_order(metadata: ClusterMetadata, partition: TopicPartition) -> Sequence[int]:
    described = metadata.partitions.get(partition)
    return described.replicas if described else ()
