import pytest

from fleetgauge_core.detection import Chain, Phase, Subject
from fleetgauge_operations.watch.message_format import summary

BROKER = Subject("orders", Chain.BROKER_DOWN, 3)


def test_the_summary_says_which_broker_of_which_cluster_in_one_line() -> None:
    assert summary(BROKER, Phase.SUSPECT, Phase.BROKER_DOWN).startswith("orders: broker 3 is down")
    assert summary(BROKER, Phase.BROKER_DOWN, Phase.HEALTHY) == "orders: broker 3 is back"


@pytest.mark.parametrize("phase", [one for one in Phase if one.names])
def test_whatever_is_named_has_words_of_its_own_for_its_beginning_and_its_end(phase: Phase) -> None:
    subject = Subject("orders", Chain.PATH, broker_id=3, vantage="zone-b", towards=2)
    beginning, end = summary(subject, Phase.HEALTHY, phase), summary(subject, phase, Phase.HEALTHY)
    assert beginning != end
    for words in (beginning, end):
        assert words.startswith("orders: ")
        assert "None" not in words
        assert "{" not in words


def test_a_path_is_told_by_its_two_ends() -> None:
    path = Subject("orders", Chain.PATH, vantage="zone-b", towards=2)
    words = "orders: vantage zone-b does not reach broker 2, which others reach"
    assert summary(path, Phase.HEALTHY, Phase.PATH) == words
