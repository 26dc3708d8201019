"""From where on a sign counts: data, each with its reason."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Ages in ms and latencies in µs, as pulses have them."""

    unanswered_ms: int = 3000
    """ApiVersions is asked every second with a second to answer: three in a row are no accident."""
    leg_silent_ms: int = 3000
    """Five probes of 600 ms without a success."""
    outstanding_ms: int = 2000
    """A leader's acknowledgement takes milliseconds; seconds of waiting are silence, not slowness."""
    steady: timedelta = timedelta(seconds=30)
    """How long a home that may not lead must be in sync and answering to count as well again."""
    vantage_stale: timedelta = timedelta(seconds=15)
    """Three pulses missed: what that vantage said last says nothing now."""

    stalled_ms: int = 20_000
    """A disk that takes so long for nothing at all hangs; a pause of the JVM stops its exporter too."""
    cut_off: timedelta = timedelta(seconds=30)
    """A broker that is silent to all and heard by its cluster for so long is cut off, not hung."""
    settled: timedelta = timedelta(seconds=5)
    """A pulse: after so long every vantage has had its say."""
    agreed: timedelta = timedelta(seconds=2)
    """Vantages ask every second, so what one sees another that looks as well has seen so much later."""
    flaps: int = 3
    """Named so often within ``flaps_within``, a broker flaps; one page says so as well as ten."""
    flaps_within: timedelta = timedelta(minutes=10)
    calm: timedelta = timedelta(minutes=2)
    """Then it is well again only after so long without a doubt."""
    no_data: timedelta = timedelta(seconds=30)
    """Six pulses missed by every vantage: longer than an agent takes to start again."""

    slow_times: int = 3
    """So many times what peers take, and what the broker itself took: Cruise Control's SlowBrokerFinder."""
    slow_p50_us: int = 20_000
    """A leader acknowledges a small message in a few ms; below this nobody's client notices."""
    new_p50_us: int = 50_000
    """For one that was not yet seen well for a minute: some always take 20 ms beside peers of 3, unasked."""
    slow_p99_us: int = 100_000
    """Of 25 probes p99 is the largest: a collection of garbage in a broker takes less than this."""
    alone_p50_us: int = 100_000
    """For a broker that has neither peers nor an hour's history to be compared with."""
    least_probes: int = 10
    """A p50 of fewer says nothing; a window of 15 s has 25."""
    round: timedelta = timedelta(seconds=14)
    """Windows of 15 s that share no probe; pulses may come a little early."""
    slow_rounds: int = 4
    """A minute in which more than half of all probes were slow: longer than a restart takes to warm up."""
    tail_rounds_of: int = 12
    """Three minutes of rounds are kept."""
    tail_rounds: int = 6
    """Half of those, in the mean of the vantages: with 5% of all requests slow, 72% of windows hold one, and
    of tails of four minutes 0.7% pass without six such of twelve. Where well brokers show one in 1.35% of
    theirs, six of twelve come by chance once in 60,000 days of a broker; five of eight once in 11,000."""
    tail_rounds_each: int = 5
    """Nearly half, as most vantages see it: what is slow on one path is no broker's tail."""
    well: timedelta = timedelta(seconds=15)
    """With the 15 s that the first window without slow probes looks back on, 30 s."""
    tail_well: timedelta = timedelta(seconds=60)
    """With 5% slow, 15 s pass without a slow probe more often than one time in four; 75 s in one of 600."""
    history_block: int = 15
    """Rounds whose median is one value of a broker's own history."""
    history_blocks: int = 16
    """An hour of them."""

    def are_fresh(self, then: datetime, now: datetime) -> bool:
        """Whether what a vantage said then still says something now."""
        return now - then < self.vantage_stale


DEFAULT_THRESHOLDS = Thresholds()
