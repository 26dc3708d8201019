"""Content is cut to the limits of receivers."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import Notifier
from fleetgauge_core.http import encode_body
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers import Receiver
from fleetgauge_operations.notify.receivers.limits import MARK, cut_details, cut_escaped, keep_lines
from fleetgauge_operations.notify.receivers.slack import escape_markup
from tests.unit.operations.notify.samples import NOON, build_notification

TEXTS = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=200)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda children: st.lists(children) | st.dictionaries(TEXTS, children),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(["id", "runbook", "around", "evidence"]), VALUES), st.integers(200, 900)
)
def test_details_fit_and_small_ones_are_kept(details: dict[str, Any], limit: int) -> None:
    cut = cut_details(details, limit)
    assert len(encode_body(cut)) <= limit
    assert cut.keys() == details.keys()
    for key, value in cut.items():
        text = details[key] if isinstance(details[key], str) else json.dumps(details[key], ensure_ascii=False)
        assert value == details[key] or (value.endswith(MARK) and text.startswith(value.removesuffix(MARK)))
    if len(encode_body(details)) <= limit:
        assert cut == details


@given(st.lists(st.text(max_size=40), min_size=1), st.integers(len(MARK), 200))
def test_lines_are_kept_whole(lines: list[str], limit: int) -> None:
    text = keep_lines(lines, limit)
    assert len(text) <= limit
    kept = text if text == "\n".join(lines) else text.removesuffix(MARK).removesuffix("\n")
    assert any(kept == "\n".join(lines[:count]) for count in range(len(lines) + 1))


@given(st.text(alphabet="a&<>é"), st.integers(len(MARK), 60))
def test_escaped_text_is_never_cut_within_an_entity(text: str, limit: int) -> None:
    escaped = cut_escaped(text, escape_markup, limit)
    assert len(escaped) <= limit
    cut = escaped.removesuffix(MARK)
    plain = cut.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert text.startswith(plain)
    assert escape_markup(plain) == cut


def build_huge_notification() -> Notification:
    return replace(
        build_notification(),
        summary="<é> & " * 1000,
        details={"id": "orders/2/0", "evidence": {"lines": ["é€😀" * 1000] * 200}},
        chat_lines=["<https://page.example/|history>", *["é & more"] * 2000],
    )


def build_body(kind: str, notification: Notification, **settings: Any) -> Any:
    notifier = Notifier.model_validate({"kind": kind, "url": "http://receiver.example", **settings})
    return Receiver(notifier).body([notification], NOON)


def test_an_event_of_pagerduty_has_at_most_512_kb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "k" * 32)
    event = build_body("pagerduty", build_huge_notification(), routing_key={"env": "KEY"})
    assert 500_000 < len(encode_body(event)) <= 512_000
    payload = event["payload"]
    assert len(payload["summary"]) <= 1024
    assert payload["custom_details"]["id"] == "orders/2/0"
    assert payload["custom_details"]["evidence"].endswith(MARK)


def test_a_message_of_slack_has_at_most_4000_characters_and_keeps_its_link() -> None:
    text = build_body("slack", build_huge_notification())["text"]
    assert 3000 < len(text) <= 4000
    assert "\n<https://page.example/|history>\n" in text
    assert text.endswith(MARK)


def test_a_webhook_gets_everything() -> None:
    notification = replace(build_notification(), document={"evidence": "é" * 1_000_000})
    assert build_body("webhook", notification)["evidence"] == "é" * 1_000_000
