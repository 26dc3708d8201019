"""What a person is told of a finding, in one line."""

from fleetgauge_pipelines.detection import Phase, Subject

#: What is said when something is named, and when it is cleared.
_WORDS = {
    Phase.BROKER_DOWN: (
        "broker {broker} is down: it neither answers nor acknowledges",
        "broker {broker} is back",
    ),
    Phase.NETWORK_UNAVAILABLE: (
        "broker {broker} is cut off: its cluster hears it, its clients do not",
        "broker {broker} is back",
    ),
    Phase.DEGRADED: (
        "broker {broker} is slow: it acknowledges later than its peers and its own last hour",
        "broker {broker} is as fast again",
    ),
    Phase.PATH: (
        "vantage {vantage} does not reach broker {towards}, which others reach",
        "vantage {vantage} reaches broker {towards} again",
    ),
    Phase.VANTAGE_ILL: (
        "vantage {vantage} does not reach most brokers, which others reach",
        "vantage {vantage} reaches its brokers again",
    ),
    Phase.CLUSTER_DOWN: ("no broker answers or acknowledges", "its brokers answer again"),
    Phase.NO_DATA: ("no pulse comes: nobody measures it", "it is measured again"),
}


def summary(subject: Subject, before: Phase, after: Phase) -> str:
    """Of what is named from then on, or cleared."""
    named, cleared = _WORDS[after if after.names else before]
    words = named if after.names else cleared
    ends = {"broker": subject.broker_id, "vantage": subject.vantage, "towards": subject.towards}
    return f"{subject.cluster_id}: {words.format(**ends)}"
