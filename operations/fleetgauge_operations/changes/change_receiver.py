"""Changes that other systems report by a POST to /changes/SOURCE, beside the endpoints of the watch."""

import hashlib
import hmac
import json
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from queue import Empty, Full, Queue
from threading import Thread
from types import TracebackType
from typing import Any

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.contract.json_fields import JsonFieldError
from fleetgauge_core.fleet import ChangeSource, Fleet, SecretError
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.posts import Post, PostResponse
from fleetgauge_operations.changes.plan.change_records import derive_report_id
from fleetgauge_operations.changes.plan.report_forms import (
    ParseReport,
    ReportContext,
    parse_github,
    parse_own,
    parse_pagerduty,
)
from fleetgauge_operations.changes.plan.reported_change import ReportedChangeError, build_reported_record
from fleetgauge_operations.changes.report_metrics import ReportMetrics

_log = logging.getLogger("fleetgauge.changes")

_PREFIX = "/changes/"
_FORMS: Mapping[str, ParseReport] = {
    "fleetgauge": parse_own,
    "github": parse_github,
    "pagerduty": parse_pagerduty,
}
#: Reports that a source may send at once, and how many more every second.
_BURST, _PER_S = 60, 1.0
#: Reports that wait to be stored.
_MAX_WAITING = 200
_TOKENS_EVERY_S = 5.0
_NOT_STORED = "the change was not stored: the telemetry cluster does not answer; send it again later"

Publish = Callable[[Sequence[ClusterChange]], None]


@dataclass(slots=True)
class _Allowance:
    """How many reports a source may still send; it grows by one a second."""

    left: float
    at_s: float

    def take(self, now_s: float) -> bool:
        self.left = min(_BURST, self.left + (now_s - self.at_s) * _PER_S)
        self.at_s = now_s
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass(frozen=True, slots=True)
class _Waiting:
    record: ClusterChange
    answer: Future[PostResponse]


class _RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.answer = PostResponse(status, {"error": message}, headers or {})


@dataclass(slots=True)
class ChangeReceiver(AbstractContextManager["ChangeReceiver"]):
    """Checks reports at once, and stores them from a thread of its own while the block runs.

    ``read_fleet`` returns the fleet by now. ``publish`` stores records; it raises KafkaUnavailableError if
    they were not stored.
    """

    read_fleet: Callable[[], Fleet]
    publish: Publish
    clock: Callable[[], datetime]
    metrics: ReportMetrics
    elapsed_s: Callable[[], float] = time.monotonic
    _waiting: Queue[_Waiting | None] = field(default_factory=lambda: Queue(_MAX_WAITING))
    _allowances: dict[str, _Allowance] = field(default_factory=dict)
    _tokens: Mapping[ChangeSource, str] = field(default_factory=dict)
    _thread: Thread = field(init=False)

    def __post_init__(self) -> None:
        self._thread = Thread(target=self._run, name="change-reports", daemon=True)

    def __enter__(self) -> "ChangeReceiver":
        self._tokens = self._read_tokens()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._waiting.put(None)
        self._thread.join()

    def receive(self, post: Post) -> PostResponse | Future[PostResponse]:
        """Answer a request, or store its change first. It never waits."""
        source = self._find_source(post.path)
        name = source.name if source else ""
        try:
            record = self._check(source, post)
            answer = self._enqueue(record) if record else _answer(HTTPStatus.OK, {"status": "ignored"})
        except _RefusedError as error:
            answer = error.answer
        if isinstance(answer, Future):
            answer.add_done_callback(lambda done: self.metrics.record_response(name, done.result()))
        else:
            self.metrics.record_response(name, answer)
        return answer

    def _find_source(self, path: str) -> ChangeSource | None:
        sources = {f"{_PREFIX}{source.name}": source for source in self.read_fleet().change_sources}
        return sources.get(path)

    def _check(self, source: ChangeSource | None, post: Post) -> ClusterChange | None:
        """Return the record of the change that a request reports; None if it reports none.

        Raises: _RefusedError.
        """
        if not post.path.startswith(_PREFIX):
            raise _RefusedError(HTTPStatus.NOT_FOUND, f"report a change to {_PREFIX}SOURCE")
        if source is None:
            raise _RefusedError(HTTPStatus.UNAUTHORIZED, "the token does not belong to this source")
        token = self._tokens.get(source)
        if token is None:
            raise _RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "the token of this source cannot be read here"
            )
        # PagerDuty's key is in the document, which has to be parsed before the sender is known.
        document = _parse(post.body) if source.form == "pagerduty" else {}
        if not _is_authentic(source, token, post, document):
            raise _RefusedError(HTTPStatus.UNAUTHORIZED, "the token does not belong to this source")
        allowance = self._allowances.setdefault(source.name, _Allowance(_BURST, self.elapsed_s()))
        if not allowance.take(self.elapsed_s()):
            message = f"more than {_BURST} reports at once and one a second; send this one again later"
            raise _RefusedError(HTTPStatus.TOO_MANY_REQUESTS, message, {"Retry-After": "60"})
        return self._build(source, document or _parse(post.body), post.headers.get("x-github-event", ""))

    def _build(self, source: ChangeSource, document: Mapping[str, Any], event: str) -> ClusterChange | None:
        now, fleet = self.clock(), self.read_fleet()
        try:
            report = _FORMS[source.form](document, ReportContext(event, source.default_segment, now))
            if report is None:
                return None
            return build_reported_record(
                report.change,
                derive_report_id(source.name, report.key) if report.key is not None else uuid.uuid4().hex,
                f"webhook: {source.name}",
                {cluster.id: cluster.segments for cluster in fleet.clusters},
                now,
                report.at,
            )
        except (JsonFieldError, ReportedChangeError) as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from error

    def _enqueue(self, record: ClusterChange) -> Future[PostResponse]:
        waiting = _Waiting(record, Future())
        try:
            self._waiting.put_nowait(waiting)
        except Full as error:
            raise _RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many reports wait; send this one again later"
            ) from error
        return waiting.answer

    def _run(self) -> None:
        while True:
            try:
                first = self._waiting.get(timeout=_TOKENS_EVERY_S)
            except Empty:
                self._tokens = self._read_tokens()
                continue
            if first is None:
                return
            batch = [first, *self._drain()]
            answers = self._store(batch)
            for waiting, answer in zip(batch, answers, strict=True):
                waiting.answer.set_result(answer)
            self._tokens = self._read_tokens()

    def _read_tokens(self) -> dict[ChangeSource, str]:
        """Return the tokens that can be read; the thread that serves requests must not wait for files."""
        tokens = {}
        for source in self.read_fleet().change_sources:
            # The watch reports those that cannot be read.
            with suppress(SecretError):
                tokens[source] = source.token.read().strip()
        return tokens

    def _drain(self) -> Sequence[_Waiting]:
        waiting: list[_Waiting] = []
        while True:
            try:
                following = self._waiting.get_nowait()
            except Empty:
                return waiting
            if following is None:
                # The end: it is seen again after this batch.
                self._waiting.put(None)
                return waiting
            waiting.append(following)

    def _store(self, batch: Sequence[_Waiting]) -> Sequence[PostResponse]:
        try:
            self.publish([waiting.record for waiting in batch])
        except KafkaUnavailableError as error:
            _log.error("%d reported changes were not stored: %s", len(batch), error)
            return [_answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": _NOT_STORED})] * len(batch)
        except Exception:
            # Whatever it is, it must not end the watch.
            _log.exception("%d reported changes were not stored", len(batch))
            return [_answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": _NOT_STORED})] * len(batch)
        return [
            _answer(HTTPStatus.ACCEPTED, {"status": "recorded", "change_id": waiting.record.change_id})
            for waiting in batch
        ]


def _answer(status: HTTPStatus, document: Mapping[str, Any]) -> PostResponse:
    return PostResponse(status, document)


def _parse(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "the body is not JSON") from error
    if not isinstance(document, dict):
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "the body is not a JSON object")
    return document


def _is_authentic(source: ChangeSource, token: str, post: Post, document: Mapping[str, Any]) -> bool:
    """Return whether a request was sent by somebody who knows the token."""
    if source.form == "github":
        # https://docs.github.com/webhooks: HMAC of the body with the secret.
        signature = hmac.new(token.encode(), post.body, hashlib.sha256).hexdigest()
        return _is_equal(post.headers.get("x-hub-signature-256", ""), f"sha256={signature}")
    if source.form == "pagerduty":
        key = document.get("routing_key")
        return isinstance(key, str) and _is_equal(key, token)
    scheme, _, given = post.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and _is_equal(given.strip(), token)


def _is_equal(given: str, expected: str) -> bool:
    """Compare in a time that tells nothing about where they differ."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode(errors="replace"))
