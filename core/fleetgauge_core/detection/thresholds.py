"""The thresholds of detection, each with its reason."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits of detection; ages are in milliseconds and latencies in microseconds, as in pulses."""

    unanswered_ms: int = 3000
    """ApiVersions is requested every second with a timeout of 1 s: three missed answers are no accident."""
    leg_silent_ms: int = 3000
    """Five probes, one every 600 ms, without a success."""
    outstanding_ms: int = 2000
    """A leader acknowledges within milliseconds; seconds without an answer are an outage, not slowness."""
    steady: timedelta = timedelta(seconds=30)
    """How long a broker that cannot lead must be in sync and answer before its alert clears."""
    vantage_stale: timedelta = timedelta(seconds=15)
    """Three missed pulses: the latest observation of that vantage is outdated."""

    stalled_ms: int = 20_000
    """Storage that makes no progress for so long hangs; a JVM pause would stop the metrics exporter too."""
    cut_off: timedelta = timedelta(seconds=30)
    """A broker that replicates for so long while no vantage reaches it does not hang: its network is down."""
    settled: timedelta = timedelta(seconds=5)
    """The interval of pulses: by then every vantage has sent one."""
    agreed: timedelta = timedelta(seconds=2)
    """Vantages request ApiVersions every second, so they observe the same event at most so far apart."""
    flaps: int = 3
    """A broker with so many alerts within ``flaps_within`` is flapping; one page covers them all."""
    flaps_within: timedelta = timedelta(minutes=10)
    calm: timedelta = timedelta(minutes=2)
    """The alert of a flapping broker clears only after so long without a sign of trouble."""
    agent_fault: timedelta = timedelta(seconds=4)
    """Two pulses in a row: a permission that is being changed may be refused for a moment."""
    no_data: timedelta = timedelta(seconds=30)
    """Six pulses missed by every vantage: longer than an agent takes to restart."""

    slow_times: int = 3
    """Slow is so many times the latency of the peers and of the broker's own past (Cruise Control's
    SlowBrokerFinder)."""
    slow_p50_us: int = 20_000
    """A leader acknowledges a small message in a few milliseconds; clients do not notice less than this."""
    new_p50_us: int = 50_000
    """For a broker without a minute of normal rounds: some always take 20 ms while their peers take 3."""
    slow_p99_us: int = 100_000
    """The p99 of 25 probes is their maximum: a garbage collection of a broker takes less than this."""
    alone_p50_us: int = 100_000
    """For a broker with neither peers nor an hour of history to compare it with."""
    least_probes: int = 10
    """A p50 of fewer probes is not reliable; a window of 15 s has 25."""
    round: timedelta = timedelta(seconds=14)
    """Windows of 15 s that share no probe; pulses may arrive slightly early."""
    slow_rounds: int = 4
    """One minute in which more than half of all probes were slow: longer than a restarted broker warms up."""
    tail_rounds_of: int = 12
    """Rounds kept for tail detection: three minutes."""
    tail_rounds: int = 6
    """Half of those rounds, on average over the vantages. With 5% of requests slow, 72% of windows contain a
    slow one, and 0.7% of four-minute tails pass without 6 of 12 such rounds. If 1.35% of a healthy broker's
    windows contain one, 6 of 12 occur by chance once in 60,000 days per broker; 5 of 8 once in 11,000."""
    tail_rounds_each: int = 5
    """The minimum for most vantages: slow requests on a single path are not the broker's tail."""
    well: timedelta = timedelta(seconds=60)
    """With the 15 s that the first window without slow probes covers, 75 s: a broker at the end of its heap
    was slow for one to two minutes again and again, and well for 30 to 45 s in between."""
    tail_well: timedelta = timedelta(seconds=60)
    """With 5% slow requests, 15 s pass without a slow probe more than once in 4 times; 75 s once in 600."""
    recurrences: int = 2
    """A broker with so many alerts, each within ``recurs_within`` of the next, comes and goes: it is one
    episode."""
    recurs_within: timedelta = timedelta(minutes=15)
    recurrence_well: timedelta = timedelta(minutes=5)
    """How long a broker that comes and goes must be well before its alert clears."""
    history_block: int = 15
    """Rounds whose median makes one value of a broker's latency history."""
    history_blocks: int = 16
    """Values of a broker's latency history: one hour."""

    def is_fresh(self, seen_at: datetime, now: datetime) -> bool:
        """Return whether an observation made at ``seen_at`` still counts."""
        return now - seen_at < self.vantage_stale


DEFAULT_THRESHOLDS = Thresholds()
