"""A review as Markdown. Whatever a lake calls its clusters, it stays text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from fleetgauge_dashboards.definitions import DEFINITIONS
from fleetgauge_dashboards.links import PLAIN, AlertsView, ClusterView, FleetView, Lens, View, href
from fleetgauge_dashboards.report.another_region import another_region
from fleetgauge_dashboards.report.blocks import ROWS, more, table, text
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.units import (
    NOTHING,
    count,
    duration,
    milliseconds,
    minutes,
    percent,
    sparkline,
)
from fleetgauge_dashboards.views.actions import Act
from fleetgauge_dashboards.views.alert_week import AlertWeek
from fleetgauge_dashboards.views.causes import Cause
from fleetgauge_dashboards.views.fleet import CLUSTERS_FOR_A_P99, shown, standing_in_words
from fleetgauge_dashboards.views.incidents import Durations, Incident
from fleetgauge_dashboards.views.movers import Mover, Standing
from fleetgauge_dashboards.views.review import Headline, Quantiles, Review

MOVERS = 10

_METRICS = {
    "latency_p99_us": ("Latency p99", "fleet_latency"),
    "availability_ratio": ("Availability", "fleet_availability"),
    "availability_p99": ("Availability of minutes, p99", "fleet_availability_p99"),
    "latency_budget_left_minutes": ("Latency budget left", "fleet_budget"),
}
_FULL = 10


@dataclass(frozen=True, slots=True)
class Letterhead:
    """Whose review it is, and in which zone's times.

    Without ``page_url`` nothing in it is a link; ``lens`` goes along with each.
    """

    name: str
    simulated: bool = False
    page_url: str | None = None
    lens: Lens = PLAIN
    zone: str = "UTC"

    @property
    def times(self) -> Times:
        return Times(self.zone)


def markdown(review: Review, of: Letterhead) -> str:
    """The whole review, ending in a newline."""
    return "\n\n".join(_Writer(review, of).title()) + "\n\n" + body(review, of)


def body(review: Review, of: Letterhead) -> str:
    """The review without its title and what stands below it."""
    write = _Writer(review, of)
    sections = (
        write.headline(),
        write.changed(),
        write.burned(),
        write.incidents(),
        write.done(),
        write.tiers(),
        another_region(review.recovery, review.drills, of.times),
        write.quality(),
        write.revisions(),
        write.definitions(),
    )
    return "\n\n".join(block for section in sections for block in section) + "\n"


class _Writer:
    """Each section as its blocks: headings, paragraphs, tables."""

    def __init__(self, review: Review, of: Letterhead) -> None:
        self._review = review
        self._of = of

    def title(self) -> list[str]:
        week, standing = self._review.week, standing_in_words(self._review.closed, self._review.revision)
        named = self._link(f"{week.week:%a %d %b %Y}", FleetView(week.week, lens=self._of.lens))
        found = [
            f"# Weekly reliability review: {text(self._of.name)}",
            f"Week of {named}, {self._of.times.instant(week.start)} to {self._of.times.instant(week.end)}, "
            f"{count(week.minutes, 'minute')}; {standing}.",
        ]
        if self._of.simulated:
            found.append("**SIMULATED.** Nothing of this was measured: `fleetgauge simulate` made it up.")
        if self._review.broken:
            found.append(
                "**Held back.** These numbers are older than the data, for the week breaks "
                f"{', '.join(map(text, self._review.broken))}."
            )
        return found

    def headline(self) -> list[str]:
        budgets = self._review.budgets
        return [
            "## Headline",
            f"Of {count(budgets.clusters, 'cluster')} {budgets.latency_kept:,} kept the latency budget and "
            f"{budgets.availability_kept:,} the availability budget; {count(budgets.bad_minutes, 'minute')} "
            "of all clusters together were over their latency objectives.",
            table(
                ("Over clusters", "Median >", "p90 >", "p99 >", "p99 a week before >", "p99 by week", "Of"),
                [_headline(one) for one in self._review.headlines],
            ),
        ]

    def changed(self) -> list[str]:
        changes = self._review.changes
        found = ["## What changed"]
        for title, standings in (
            ("Over budget, and was not the week before", changes.newly_over),
            ("Over budget again", changes.still_over),
            ("Recovered", changes.recovered),
        ):
            found += self._standings(title, standings)
        found += self._movers("Slower", changes.slower)
        found += self._movers("Faster", changes.faster)
        for title, clusters in (("New", changes.joined), ("Gone", changes.left)):
            if clusters:
                found.append(f"{title}: {_listed(map(self._cluster, clusters), len(clusters))}.")
        if len(found) == 1:
            found.append("No budget was lost or won back, and no cluster's latency p99 moved by a tenth.")
        if not (changes.newly_over or changes.still_over):
            found += self._standings("Nearest to their budgets", self._review.worst)
        return found

    def burned(self) -> list[str]:
        found = ["## What burned the latency budgets"]
        if not self._review.causes:
            bad = self._review.budgets.bad_minutes
            words = f"{count(bad, 'bad minute')} without a cause on record." if bad else "Nothing did."
            return [*found, words]
        heads = ("Cause", "Bad minutes >", "Share >", "", "Clusters >", "Week before >")
        return [*found, table(heads, map(_cause, self._review.causes))]

    def incidents(self) -> list[str]:
        happened = self._review.incidents
        if not happened:
            return ["## Incidents", "Nothing was named."]
        detected = _times("Named", self._review.detected, "after the first sign") or "Each was named at once."
        acted = _times("Acted on", self._review.acted, "later") or "Nothing done about one is on record."
        longest = sorted(happened, key=lambda one: one.lasted_s or float("inf"), reverse=True)
        kept = sorted(longest[:ROWS], key=lambda one: (one.at, one.alert_id))
        heads = ("Named", "What", "Where", "After first sign >", "Acted after >", "Lasted >")
        return [
            "## Incidents",
            f"{count(len(happened), 'finding')} named. {detected} {acted}",
            _judged(self._review.judged),
            table(heads, map(self._incident, kept)),
            *more(len(happened) - len(kept)),
        ]

    def done(self) -> list[str]:
        acts = self._review.acts
        if not acts:
            return ["## What was done", "No action on a broker is on record."]
        heads = ("Began", "What", "Where", "By", "Outcome", "Until", "Why")
        return [
            "## What was done",
            _cases(acts, self._review.saved_min),
            table(heads, map(self._act, acts[:ROWS])),
            *more(len(acts) - ROWS),
        ]

    def tiers(self) -> list[str]:
        if not self._review.tiers:
            return []
        heads = ("Tier", "Clusters >", "Budget left, median >", "p90 >", "p99 >", "Availability, p99 >")
        rows = [
            (
                text(tier.tier),
                f"{tier.budget_left.clusters:,}",
                *map(minutes, _three(tier.budget_left)),
                percent(tier.availability.p99 if tier.availability else None),
            )
            for tier in self._review.tiers
        ]
        return ["## Budgets by tier", table(heads, rows)]

    def quality(self) -> list[str]:
        found = ["## Data quality"]
        out = self._review.excluded
        if out:
            named = (f"{self._cluster(one.cluster_id)} ({percent(one.coverage, 1)})" for one in out)
            found.append(
                f"Not counted, for a coverage under 90%: {count(len(out), 'cluster')}: "
                f"{_listed(named, len(out))}."
            )
        else:
            found.append("Every cluster counts: coverage is at least 90% everywhere.")
        if self._review.quarantined:
            rows = [(text(reason), f"{records:,}") for reason, records in self._review.quarantined]
            found += ["Records in quarantine:", table(("Reason", "Records >"), rows)]
        else:
            found.append("No record was put into quarantine.")
        return found

    def revisions(self) -> list[str]:
        revised = self._review.revised
        if not revised:
            return ["## Revisions", "No closed week was revised."]
        heads = ("Week", "Cluster", "Revision >", "Why", "Latency p99 since >")
        rows = [
            (
                f"{one.week}",
                self._cluster(one.cluster_id),
                f"{one.revision}",
                text(one.reason),
                milliseconds(one.latency_p99_us),
            )
            for one in revised[:ROWS]
        ]
        return ["## Revisions", table(heads, rows), *more(len(revised) - ROWS)]

    def definitions(self) -> list[str]:
        words = [f"- **{title}**: {text(DEFINITIONS[name])}" for title, name in _METRICS.values()]
        return ["## Definitions", "\n".join(words)]

    def _standings(self, title: str, standings: Sequence[Standing]) -> list[str]:
        if not standings:
            return []
        heads = (
            "Cluster",
            "Bad minutes >",
            "Week before >",
            "Latency budget left >",
            "Availability budget left >",
            "Most for",
        )
        rows = (
            (
                self._cluster(one.cluster_id),
                f"{one.bad_minutes:,}",
                NOTHING if one.bad_minutes_before is None else f"{one.bad_minutes_before:,}",
                minutes(one.latency_left_minutes),
                minutes(one.availability_left_minutes),
                text(one.cause or NOTHING),
            )
            for one in standings[:ROWS]
        )
        return [f"### {title}", table(heads, rows), *more(len(standings) - ROWS)]

    def _movers(self, title: str, movers: Sequence[Mover]) -> list[str]:
        if not movers:
            return []
        heads = ("Cluster", "Week before >", "Latency p99 >", "Times >", "Bad minutes most for")
        rows = (
            (
                self._cluster(one.cluster_id),
                milliseconds(one.before_us),
                milliseconds(one.now_us),
                f"{one.ratio:.2f}",
                text(one.cause or NOTHING),
            )
            for one in movers[:MOVERS]
        )
        return [f"### {title}", table(heads, rows), *more(len(movers) - MOVERS)]

    def _incident(self, one: Incident) -> tuple[str, ...]:
        where = AlertsView(one.cluster_id, one.alert_id, lens=self._of.lens)
        return (
            self._of.times.instant(one.at),
            self._link(one.kind, where),
            self._whom(one.cluster_id, one.broker_id),
            "at once" if one.detected_s is None else _seconds(one.detected_s),
            NOTHING if one.acted_s is None else _seconds(one.acted_s),
            "still held" if one.lasted_s is None else _seconds(one.lasted_s),
        )

    def _act(self, act: Act) -> tuple[str, ...]:
        return (
            self._of.times.instant(act.at),
            text(act.kind),
            self._whom(act.cluster_id, act.broker_id),
            text(act.author),
            text(act.outcome or NOTHING),
            self._of.times.instant(act.ended) if act.ended else NOTHING,
            text("; ".join((act.reason, *act.words))),
        )

    def _whom(self, cluster_id: str, broker_id: int | None) -> str:
        cluster = self._cluster(cluster_id)
        return cluster if broker_id is None else f"{cluster} broker {broker_id}"

    def _cluster(self, cluster_id: str) -> str:
        view = ClusterView(cluster_id, self._review.week.week, lens=self._of.lens)
        return self._link(cluster_id, view)

    def _link(self, words: str, view: View) -> str:
        if self._of.page_url is None:
            return text(words)
        return f"[{text(words)}](<{self._of.page_url.rstrip('/')}{href(view)}>)"


def _headline(one: Headline) -> tuple[str, ...]:
    title, _ = _METRICS[one.metric]
    return (
        title,
        *(shown(one.metric, value) for value in _three(one.now)),
        shown(one.metric, one.before.p99 if one.before else None),
        sparkline(one.trend),
        _sample(one.now),
    )


def _sample(now: Quantiles | None) -> str:
    if now is None or now.clusters == 0:
        return "no cluster counts"
    of = count(now.clusters, "cluster")
    return of if now.clusters >= CLUSTERS_FOR_A_P99 else f"{of}: p99 is the worst of them"


def _three(of: Quantiles | None) -> tuple[float | None, float | None, float | None]:
    return (of.median, of.p90, of.p99) if of else (None, None, None)


def _cause(one: Cause) -> tuple[str, ...]:
    return (
        text(one.cause),
        f"{one.bad_minutes:,}",
        percent(one.share, 1),
        "█" * max(1, round(_FULL * one.share)),
        f"{one.clusters:,}",
        f"{one.bad_minutes_before:,}",
    )


def _judged(week: AlertWeek) -> str:
    judged = f"{week.right:,} right and {count(week.false_alarms, 'false alarm')}"
    unjudged = f"{week.unjudged:,} of {count(week.named, 'alert')} nobody has judged"
    if week.precision is None:
        return f"Precision is not known: {unjudged}."
    return f"Precision {percent(week.precision, 1)} by people's judgement: {judged}; {unjudged}."


def _cases(acts: Sequence[Act], saved_min: int) -> str:
    cases = [act for act in acts if act.is_case]
    done = sum(act.was_done and not act.was_handed_over for act in cases)
    handed = sum(act.was_handed_over for act in cases)
    return (
        f"{count(len(cases), 'case')} of sick brokers: {done:,} done, {handed:,} handed over to a person. "
        f"{count(saved_min, 'minute')} saved: the broker was still ill, and its cluster within its objective."
    )


def _times(what: str, known: Durations | None, since: str) -> str | None:
    if known is None:
        return None
    longest = f", {_seconds(known.longest_s)} at most" if known.of > 1 else ""
    return f"{what} {_seconds(known.median_s)} {since} in the median of {known.of:,}{longest}."


def _seconds(length_s: float) -> str:
    return duration(timedelta(seconds=length_s))


def _listed(named: Iterable[str], of: int) -> str:
    return ", ".join(islice(named, ROWS)) + (f" and {of - ROWS:,} more" if of > ROWS else "")
