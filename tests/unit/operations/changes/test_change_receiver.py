"""Reports of changes by HTTP: who may send them, in which forms, and how many."""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.posts import Post, PostResponse
from fleetgauge_operations.changes.change_receiver import ChangeReceiver
from fleetgauge_operations.changes.report_metrics import ReportMetrics

NOW = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)
OWN = {"title": "orders 2.4", "cluster": "orders"}
DEPLOYMENT = {
    "id": 7,
    "ref": "v2.4",
    "environment": "production",
    "created_at": "2026-03-02T11:50:00Z",
    "creator": {"login": "eve"},
    "payload": {},
}
REPOSITORY = {"full_name": "shop/orders", "html_url": "https://github.example/shop/orders"}
STATUS = {"state": "success", "created_at": "2026-03-02T11:58:00Z", "target_url": "https://ci.example/9"}
CHANGE_EVENT = {
    "routing_key": "key-of-pager",
    "payload": {
        "summary": "line 1\nline 2",
        "timestamp": "2026-03-02T11:42:58.315+0000",
        "source": "builds",
        "custom_details": {"build": 3},
    },
    "links": [{"href": "https://ci.example/3", "text": "build"}],
}


@dataclass
class Stored:
    """Where reports go; ``failure`` is raised instead."""

    records: list[ClusterChange] = field(default_factory=list)
    failure: Exception | None = None
    may_go_on: Event = field(default_factory=Event)
    is_busy: Event = field(default_factory=Event)

    def publish(self, records: Sequence[ClusterChange]) -> None:
        self.is_busy.set()
        assert self.may_go_on.wait(60)
        if self.failure:
            raise self.failure
        self.records += records


@dataclass
class Bench:
    receiver: ChangeReceiver
    stored: Stored
    times_s: list[float]
    registry: CollectorRegistry
    times: list[datetime]

    def post(self, source: str, document: Any, headers: Mapping[str, str]) -> PostResponse:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return wait(self.receiver.receive(Post(f"/changes/{source}", headers, body)))

    def own(self, document: Any, token: str = "token-of-ci") -> PostResponse:
        return self.post("ci", document, {"authorization": f"Bearer {token}"})

    def github(self, event: str, document: Any, secret: str = "secret-of-github") -> PostResponse:
        body = json.dumps(document).encode()
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return self.post(
            "releases", body, {"x-github-event": event, "x-hub-signature-256": f"sha256={signature}"}
        )


def wait(answer: PostResponse | Future[PostResponse]) -> PostResponse:
    return answer.result(60) if isinstance(answer, Future) else answer


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    (tmp_path / "token").write_text("token-of-ci\n")
    monkeypatch.setenv("GITHUB_SECRET", "secret-of-github")
    monkeypatch.setenv("PAGER_KEY", "key-of-pager")
    monkeypatch.setenv("BLANK_TOKEN", " \n")
    fleet = Fleet.model_validate(
        {
            "clusters": [
                {"id": "orders", "bootstrap": "a:1", "region": "eu"},
                {"id": "payments", "bootstrap": "b:1", "region": "us"},
            ],
            "change_sources": [
                {"name": "ci", "token": {"file": str(tmp_path / "token")}},
                {
                    "name": "releases",
                    "form": "github",
                    "token": {"env": "GITHUB_SECRET"},
                    "segment": "region=eu",
                },
                {"name": "pager", "form": "pagerduty", "token": {"env": "PAGER_KEY"}},
                {"name": "unset", "token": {"env": "NOT_SET_ANYWHERE"}},
                {"name": "blank", "token": {"env": "BLANK_TOKEN"}},
                {"name": "blank-hub", "form": "github", "token": {"env": "BLANK_TOKEN"}},
            ],
        }
    )
    stored, times_s = Stored(), [0.0]
    stored.may_go_on.set()
    registry, times = CollectorRegistry(), [NOW]
    receiver = ChangeReceiver(
        lambda: fleet, stored.publish, lambda: times[-1], ReportMetrics(registry), lambda: times_s[-1]
    )
    with receiver:
        yield Bench(receiver, stored, times_s, registry, times)


def test_a_report_is_stored_before_it_is_answered(bench: Bench) -> None:
    more = {"broker": 2, "kind": "deploy", "author": "eve", "link": "https://ci.example/1"}
    times = {"from": "2026-03-02T11:00:00+01:00", "to": "2026-03-02T11:30:00Z"}
    answer = bench.own(OWN | more | times)
    (record,) = bench.stored.records
    assert (answer.status, answer.document) == (202, {"status": "recorded", "change_id": record.change_id})
    assert (record.cluster_id, record.broker_id, record.title) == ("orders", 2, "orders 2.4")
    assert (record.kind, record.author, record.link) == ("deploy", "eve", "https://ci.example/1")
    assert record.starts == NOW.replace(hour=10, minute=0, microsecond=0)
    assert record.ends == NOW.replace(hour=11, minute=30, microsecond=0)
    assert (record.source, record.at) == ("webhook: ci", NOW.replace(microsecond=123000))


def test_a_report_without_times_or_clusters_is_of_now_and_of_the_sources_segment(bench: Bench) -> None:
    assert bench.own({"title": "x"}).status == 202
    assert bench.own({"title": "x", "segment": "region=us"}).status == 202
    assert bench.own({"title": "x", "fleet": True}).status == 202
    subjects = [(record.segment, record.segment_value) for record in bench.stored.records]
    assert subjects == [("fleet", ""), ("region", "us"), ("fleet", "")]
    now = NOW.replace(microsecond=123000)
    assert {(record.starts, record.ends) for record in bench.stored.records} == {(now, now)}


def test_a_report_with_an_id_can_be_sent_again_and_amended(bench: Bench) -> None:
    # The last one takes back the second one.
    for number, end in enumerate(("2026-03-02T12:10:00Z", "2026-03-02T12:30:00Z", "2026-03-02T12:10:00Z")):
        bench.times.append(NOW + number * timedelta(seconds=1))
        times = {"from": "2026-03-02T12:00:00Z", "to": end}
        assert bench.own(OWN | {"id": "release 9"} | times).status == 202
    assert len({record.change_id for record in bench.stored.records}) == 1
    assert len({record.event_id for record in bench.stored.records}) == 3
    latest = max(bench.stored.records, key=lambda record: record.at)
    assert latest.ends == NOW.replace(minute=10, microsecond=0)
    bench.own(OWN)
    bench.own(OWN)
    assert len({record.change_id for record in bench.stored.records}) == 3


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"{", "the body is not JSON"),
        (b"\xff\xfe", "the body is not JSON"),
        (b"[" * 60_000, "the body is not JSON"),
        ([], "the body is not a JSON object"),
        ({}, "title: must not be blank"),
        ({"title": 7}, "title: must be text"),
        ({"title": "x" * 301}, "title: longer than 300 characters"),
        ({"title": "a\nb"}, "title: has a control character"),
        ({"title": "\ud800"}, "title: has a control character"),
        ({"title": "x", "kind": "party"}, "kind: 'party' is none of deploy"),
        ({"title": "x", "cluster": "nobody"}, "cluster: the fleet has no cluster 'nobody'"),
        ({"title": "x", "cluster": ["orders"]}, "cluster: must be text"),
        ({"title": "x", "cluster": "orders", "fleet": True}, "give one of cluster, segment and fleet"),
        ({"title": "x", "fleet": "yes"}, "fleet: must be true or false"),
        ({"title": "x", "segment": "region"}, "segment: must be NAME=VALUE"),
        ({"title": "x", "segment": "region=mars"}, "segment: no cluster is in region=mars"),
        ({"title": "x", "broker": 2}, "broker: needs the cluster"),
        (OWN | {"broker": True}, "broker: must be a whole number"),
        (OWN | {"broker": 2**31}, "broker: must be from 0 to"),
        (OWN | {"from": "yesterday"}, "from: 'yesterday' is not a time with its zone"),
        (OWN | {"from": "2026-03-02T10:00:00"}, "is not a time with its zone"),
        (OWN | {"from": "0001-01-01T00:00:00+14:00"}, "is outside of the years 1 to 9999"),
        (OWN | {"from": "1970-01-01T00:00:00Z"}, "from: more than 35 days ago"),
        (OWN | {"from": "0001-01-01T00:00:00Z", "to": "2026-03-02T12:00:00Z"}, "from: more than 35 days"),
        (OWN | {"from": "2026-02-20T00:00:00Z", "to": "2026-03-02T12:00:00Z"}, "longer than 7 days"),
        (OWN | {"to": "2026-03-01T10:00:00Z"}, "to: 2026-03-01T10:00:00Z is before from"),
        (OWN | {"from": "2027-03-02T10:00:00Z"}, "from, to: more than 35 days in the future"),
        (OWN | {"link": "javascript:alert(1)"}, "link: must begin with http"),
        (OWN | {"link": "https://x/" + "a" * 2000}, "link: longer than 2000 characters"),
        (OWN | {"begin": "now"}, "'begin' is no field of a change"),
    ],
)
def test_a_report_that_cannot_be_accepted_says_which_field(bench: Bench, document: Any, message: str) -> None:
    answer = bench.own(document)
    assert answer.status == HTTPStatus.BAD_REQUEST
    assert message in answer.document["error"]
    assert bench.stored.records == []


@pytest.mark.parametrize(
    ("source", "headers"),
    [
        ("ci", {}),
        ("ci", {"authorization": "Bearer wrong"}),
        ("ci", {"authorization": "Basic token-of-ci"}),
        ("ci", {"authorization": "Bearer \udcff"}),
        ("nobody", {"authorization": "Bearer token-of-ci"}),
        ("releases", {"authorization": "Bearer secret-of-github"}),
        ("releases", {"x-hub-signature-256": "sha256=00"}),
    ],
)
def test_a_report_without_the_token_of_its_source_is_refused(
    bench: Bench, source: str, headers: dict[str, str]
) -> None:
    answer = bench.post(source, OWN, headers)
    assert answer.status == HTTPStatus.UNAUTHORIZED
    assert answer.document == {"error": "the token does not belong to this source"}
    assert bench.post("pager", CHANGE_EVENT | {"routing_key": "wrong"}, {}).status == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize("given", ["x", ""])
@pytest.mark.parametrize("source", ["unset", "blank", "blank-hub"])
def test_a_token_that_cannot_be_read_or_is_blank_lets_nobody_in(
    bench: Bench, source: str, given: str
) -> None:
    signature = hmac.new(given.encode(), json.dumps(OWN).encode(), hashlib.sha256).hexdigest()
    headers = {"authorization": f"Bearer {given}", "x-hub-signature-256": f"sha256={signature}"}
    answer = bench.post(source, OWN, headers)
    assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert answer.document == {"error": "the token of this source cannot be read here"}


def test_whatever_fails_while_a_report_is_stored_is_503_and_ends_nothing(bench: Bench) -> None:
    bench.stored.failure = RuntimeError("a fault of the client library")
    assert bench.own(OWN).status == HTTPStatus.SERVICE_UNAVAILABLE
    bench.stored.failure = None
    assert bench.own(OWN).status == HTTPStatus.ACCEPTED


def test_another_path_is_not_found(bench: Bench) -> None:
    answer = wait(bench.receiver.receive(Post("/metrics", {}, b"{}")))
    assert (answer.status, answer.document) == (404, {"error": "report a change to /changes/SOURCE"})


def test_more_than_a_source_may_send_is_refused_until_some_time_has_passed(bench: Bench) -> None:
    statuses = [bench.own(OWN).status for _ in range(70)]
    assert statuses == [HTTPStatus.ACCEPTED] * 60 + [HTTPStatus.TOO_MANY_REQUESTS] * 10
    assert bench.own(OWN).headers == {"Retry-After": "60"}
    # Another source is not affected, and who has no token uses nothing up.
    assert bench.github("ping", {}).status == HTTPStatus.OK
    bench.times_s.append(5.0)
    statuses = [bench.own(OWN).status for _ in range(6)]
    assert statuses == [HTTPStatus.ACCEPTED] * 5 + [HTTPStatus.TOO_MANY_REQUESTS]


def test_a_telemetry_cluster_that_does_not_answer_is_503(bench: Bench) -> None:
    bench.stored.failure = KafkaUnavailableError("no answer")
    answer = bench.own(OWN)
    assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "send it again later" in answer.document["error"]
    bench.stored.failure = None
    assert bench.own(OWN).status == HTTPStatus.ACCEPTED


def test_reports_that_wait_are_stored_together_and_too_many_are_refused(bench: Bench) -> None:
    bench.stored.may_go_on.clear()
    answers = []
    for number in range(1 + 260):
        if number == 1:
            assert bench.stored.is_busy.wait(60)
        bench.times_s.append(float(60 * number))
        post = Post("/changes/ci", {"authorization": "Bearer token-of-ci"}, json.dumps(OWN).encode())
        answers.append(bench.receiver.receive(post))
    bench.stored.may_go_on.set()
    statuses = [wait(answer).status for answer in answers]
    assert statuses.count(HTTPStatus.SERVICE_UNAVAILABLE) == 60
    assert statuses.count(HTTPStatus.ACCEPTED) == len(bench.stored.records) == 201


def test_a_deployment_of_github_is_a_change_until_its_last_status(bench: Bench) -> None:
    document = {"deployment": DEPLOYMENT, "repository": REPOSITORY}
    assert bench.github("deployment", document).status == HTTPStatus.ACCEPTED
    for state in ("queued", "in_progress", "inactive"):
        answer = bench.github(
            "deployment_status", document | {"deployment_status": STATUS | {"state": state}}
        )
        assert (answer.status, answer.document) == (200, {"status": "ignored"})
    assert bench.github("deployment_status", document | {"deployment_status": STATUS}).status == 202
    begun, ended = bench.stored.records
    assert begun.change_id == ended.change_id
    assert (begun.title, begun.kind, begun.author) == ("shop/orders v2.4 to production", "deploy", "eve")
    assert begun.link == "https://github.example/shop/orders"
    assert begun.starts == begun.ends == ended.starts == datetime(2026, 3, 2, 11, 50, tzinfo=UTC)
    assert ended.ends == datetime(2026, 3, 2, 11, 58, tzinfo=UTC)
    assert (ended.title, ended.link) == ("shop/orders v2.4 to production: success", "https://ci.example/9")
    assert (ended.segment, ended.segment_value) == ("region", "eu")


def test_a_deployment_that_is_delivered_after_its_status_does_not_take_back_its_end(bench: Bench) -> None:
    document = {"deployment": DEPLOYMENT | {"creator": None}, "repository": REPOSITORY}
    bad_link = STATUS | {"target_url": "javascript:alert(1)", "log_url": "x" * 3000}
    assert bench.github("deployment_status", document | {"deployment_status": bad_link}).status == 202
    assert bench.github("deployment", document).status == 202
    latest = max(bench.stored.records, key=lambda record: record.at)
    assert latest.ends == datetime(2026, 3, 2, 11, 58, tzinfo=UTC)
    assert (latest.link, latest.author) == ("https://github.example/shop/orders", None)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "deployment: must be an object"),
        ({"deployment": DEPLOYMENT, "repository": []}, "repository: must be an object"),
        ({"deployment": DEPLOYMENT | {"id": "7"}, "repository": REPOSITORY}, "id: must be a whole number"),
        ({"deployment": {"id": 7}, "repository": REPOSITORY}, "created_at: is missing"),
    ],
)
def test_a_webhook_of_github_that_is_incomplete_says_what_is_missing(
    bench: Bench, document: Any, message: str
) -> None:
    answer = bench.github("deployment", document)
    assert (answer.status, message in answer.document["error"]) == (HTTPStatus.BAD_REQUEST, True)


@pytest.mark.parametrize("value", [None, True, 7, 1.5, "x", "\ud800", [], [1], {}, {"a": 1}])
def test_a_field_of_any_type_is_answered(bench: Bench, value: Any) -> None:
    deployment = {"deployment": DEPLOYMENT, "deployment_status": STATUS, "repository": REPOSITORY}
    answers = [bench.github("deployment_status", document) for document in with_each_field(deployment, value)]
    bench.times_s.append(60.0)
    answers += [bench.post("pager", document, {}) for document in with_each_field(CHANGE_EVENT, value)]
    bench.times_s.append(120.0)
    own = OWN | dict.fromkeys(("id", "kind", "cluster", "broker", "segment", "fleet", "to", "link"))
    answers += [bench.own(document) for document in with_each_field(own, value)]
    assert {answer.status for answer in answers} <= {200, 202, 400, 401}
    assert any(answer.status == HTTPStatus.BAD_REQUEST for answer in answers)


def with_each_field(document: Mapping[str, Any], value: Any) -> Iterator[dict[str, Any]]:
    """Yield the document with one of its fields replaced, at each depth in turn."""
    for name, member in document.items():
        yield {**document, name: value}
        if isinstance(member, dict):
            yield from ({**document, name: inner} for inner in with_each_field(member, value))


def test_a_change_event_of_pagerduty_is_a_change(bench: Bench) -> None:
    assert bench.post("pager", CHANGE_EVENT, {}).status == HTTPStatus.ACCEPTED
    without_time = {"routing_key": "key-of-pager", "payload": {"summary": "x" * 1000}}
    assert bench.post("pager", without_time, {}).status == HTTPStatus.ACCEPTED
    event, of_now = bench.stored.records
    assert (event.title, event.author, event.link) == ("line 1 line 2", "builds", "https://ci.example/3")
    assert event.starts == event.ends == datetime(2026, 3, 2, 11, 42, 58, 315000, tzinfo=UTC)
    assert of_now.title == "x" * 299 + "…"
    assert NOW - of_now.starts < timedelta(milliseconds=1)
    answer = bench.post("pager", {"routing_key": "key-of-pager", "payload": {"summary": None}}, {})
    assert (answer.status, answer.document["error"][:5]) == (400, "title")


def test_answers_are_counted_by_source_and_status(bench: Bench) -> None:
    bench.own(OWN)
    bench.own(OWN, token="wrong")
    bench.post("nobody", OWN, {})
    counted = {
        (source, status): bench.registry.get_sample_value(
            "fleetgauge_change_reports_total", {"source": source, "status": status}
        )
        for source, status in (("ci", "202"), ("ci", "401"), ("", "401"))
    }
    assert counted == {("ci", "202"): 1.0, ("ci", "401"): 1.0, ("", "401"): 1.0}
