"""Why a number is what it is, in words: the text behind each help sign."""

DEFINITIONS = {
    "age": (
        "Seconds since the end of the newest measured minute of any cluster. A minute arrives about a "
        "minute after its end; from 3 minutes on the page says that it is stale."
    ),
    "recent_coverage": (
        "Broker-minutes measured over broker-minutes expected, in the hour up to the newest data. A "
        "minute without a record was expected too: silence is not health."
    ),
    "fleet_latency": (
        "Each cluster has one number a week: the p99 of its minutes, where a minute is the p99 of its "
        "worst broker, from the scheduled send to the consumed message. Median, p90 and p99 are taken "
        "over the clusters whose coverage is at least 90%, by nearest rank: each is the number of a real "
        "cluster."
    ),
    "fleet_availability": (
        "Each cluster's successes over attempts in the week. A probe succeeds when it is acknowledged "
        "within 5 s and consumed within 10 s of its scheduled send. Quantiles count from the bad side: "
        "99% of clusters are at or above the p99."
    ),
    "fleet_availability_p99": (
        "Each cluster has one number a week: the availability that 99% of its minutes reach, where a minute "
        "is its worst broker's. Quantiles count from the bad side."
    ),
    "fleet_budget": (
        "Minutes that may still be bad this week before a cluster misses its latency objective: 1% of the "
        "week's expected minutes, less the bad ones. Quantiles count from the bad side."
    ),
    "latency_p99": (
        "The p99 of the week's minutes by nearest rank; a minute is the p99 of its worst broker, of the "
        "probes that succeeded, from the scheduled send to the consumed message. With failures counted, a "
        "failed probe stands for 10,000 ms, so that an outage cannot improve the number."
    ),
    "latency_budget": (
        "1% of the week's expected minutes may be bad. A minute is bad when its worst broker's p99, "
        "failures counted as 10,000 ms, is over the objective."
    ),
    "availability_ratio": (
        "All probes of the week that succeeded, over all that were attempted. The budget is the part that "
        "may fail, as minutes of full outage."
    ),
    "coverage": (
        "Broker-minutes measured over those expected, client leg. A broker-minute is measured from 50 "
        "attempts on. Under 90% the week does not count in the fleet's quantiles."
    ),
    "latency_chart": (
        "Each point is a minute's worst broker. Solid: probes that succeeded. Dashed: failures counted as "
        "10,000 ms. A triangle marks a minute over the objective; a hatched stretch was not measured."
    ),
    "availability_chart": ("Successes over attempts of all brokers' probes in the minute."),
    "heatmap": (
        "One row a broker, one cell a step. Client leg: what a client of that broker's partitions feels, "
        "so one sick broker shows on its replicas' rows too. Leader leg: what the broker alone does; look "
        "there for who is sick. Failures count as the deadline. Hatched: not measured, which is neither "
        "good nor bad."
    ),
    "leader_lines": (
        "Acknowledgement p99 of probes that only the broker itself has to confirm (acks=1), of those that "
        "succeeded. The line of a sick broker leaves the others; a cross stands where its probes fail."
    ),
    "minute_latency": (
        "The p99 of the minute's worst broker, of the probes that succeeded, from the scheduled send to "
        "the consumed message. The minute is bad when it is over the objective with failures counted as "
        "10,000 ms."
    ),
    "minute_availability": (
        "Successes over attempts of the minute's worst broker, client leg. Pooled: of all brokers' probes."
    ),
    "minute_measured": (
        "Brokers of which at least 50 probes of the client leg were attempted in the minute, of those that "
        "the cluster has."
    ),
    "samples": (
        "A broker's probes side by side, the fastest at its left and the slowest at its right. A cross at "
        "the deadline is a probe that failed. The bar is the p99 of those that succeeded: by nearest rank, "
        "so it is a sample itself."
    ),
    "client_leg": (
        "What a client feels of the partitions that the broker leads: acknowledged by all in-sync replicas "
        "(acks=all) and consumed. One sick broker shows on the others' client legs too."
    ),
    "failures": (
        "Probes that were not acknowledged within 5 s or not consumed within 10 s of their scheduled send, "
        "by the reason that the client library or the probe gave."
    ),
    "reasons": (
        "Of the probes that failed: what stood in the way, as the client library or the probe put it, how "
        "often on each leg, and in which minutes first and last. A cold connection is tried every second; "
        "where it tells why nobody gets in, a time-out carries that name."
    ),
    "lost": (
        "Messages that the broker acknowledged and that were not consumed within their deadline. One that "
        "comes twice is a retry of the producer, not a loss."
    ),
    "led_by": (
        "Minutes in which the broker's own probe partition was led by another broker for a part of the "
        "minute, as after a restart, a failure or a demotion."
    ),
    "gates": (
        "Expectations that each batch of the pipeline has to meet before its tables move, and each week "
        "before it is written. One that does not hold keeps the last good state in place."
    ),
    "quarantine": (
        "Records that were not taken into the tables, by the reason. None is thrown away: each lies in "
        "ops/quarantine as it came."
    ),
    "lateness": (
        "From the end of a minute until its record stood in bronze, over the newest hour of data. A late "
        "record changes its minute and an open week; a closed week gets a revision."
    ),
    "revisions": (
        "A week closes once late records have had their time. What comes after that, a correction or a "
        "recomputation, is a revision of its own with its reason; earlier ones are kept."
    ),
    "worst_homes": (
        "A tick stands in the row of the broker whose p99 was the minute's, or the step's, worst; orange "
        "where that minute was over the objective. A row that fills is a broker to look at."
    ),
    "skew": (
        "The slowest broker's p99 over the median broker's, leader leg, of each minute. At 1 all are alike;"
        " after a rebalance the line shows how soon they are so again (Kora, figure 5)."
    ),
    "burn_down": (
        "Minutes that may still be bad this week: the budget, less the bad minutes so far. Above the dashed"
        " line it lasts beyond the week, below it does not. Minutes that a correction leaves out of the "
        "whole cluster do not count."
    ),
    "segments": (
        "Quantiles over the clusters of each value, as above over those of the fleet. Under 100 clusters a "
        "p99 is the worst of them."
    ),
    "alert_history": (
        "Findings that ended, from when they were named until they cleared. Their evidence is what was "
        "seen at each change of state."
    ),
    "alerts_named": "Findings that got a name since the week began. A suspicion that passed is none.",
    "precision": (
        "Of the alerts that people judged, those that were right. Judge one below its evidence. An alert "
        "that nobody judged counts neither way."
    ),
    "time_to_detect": "From the first sign of a finding until it was named, over the alerts of the week.",
    "time_to_acknowledge": "From its name until somebody took it on, over the alerts of the week.",
    "causes": (
        "Bad minutes of all clusters by what was found of them at the time: a broker's finding, maintenance, "
        "a vantage of the probes, or unknown. Each bad minute counts once."
    ),
    "recovery_mirrors": (
        "Mirrors of which something new was learned within `recovery.limits.stale_s`, of all. One that "
        "stands still has told nothing for longer, though its source has more; one that goes round "
        "brings tracers back to where they were made. What nobody has told of for 3 minutes is not up to "
        "date."
    ),
    "recovery_rpo": (
        "For how long the oldest record that is not known to have been copied has been at its source: "
        "what a failover would lose, in seconds, of the mirror that is furthest behind. At most: as far "
        "as MirrorMaker has told, which it does late. The estimate is by tracers, records of our own."
    ),
    "recovery_groups": (
        "Consumer groups that could go on in the other cluster now, of all that the fleet file names: "
        "each partition has a place to go on, and what would be read again or lost is within "
        "`recovery.limits`. Not ready comes first, then who would lose most, then who would read most "
        "again."
    ),
    "recovery_findings": (
        "What speaks against a failover, told when it began and not ended yet. A page calls somebody at "
        "once; a ticket can wait."
    ),
    "recovery_drill": (
        "The newest row of `fleetgauge recover drill`. READY: each of its groups was. Executed: offsets "
        "were written there and records read from them; else it was a forecast."
    ),
    "failover": (
        "YES: every group is ready, every mirror into the cluster that takes over is up to date, "
        "producers, where tracers are sent, get through to its region, its capacity, where it is given, "
        "is enough, and no page about it is open. NO: one of these does not hold. NOBODY KNOWS: one of "
        "them is not known, or nothing was told for 3 minutes; what is not known never counts in favour."
    ),
    "failover_replay": (
        "Records that lie in the cluster that takes over from where each group goes on: no more than "
        "these are read again. Over all groups; a record that two groups read counts twice."
    ),
    "failover_lost": (
        "Records of the sources in the region that fails that are not known to have got across. Over all "
        "groups; a record that two groups read counts twice."
    ),
    "failover_rto": (
        "The slowest group's time until it reads on: to decide, to write its offsets, and to read the "
        "first record, as drills that were executed took."
    ),
    "failover_mirrors": (
        "What is copied into the cluster that takes over. Silent: nothing new was learned of it for so long."
    ),
    "failover_producers": (
        "Tracers that were sent from a vantage into the clusters of the region that takes over in the "
        "newest minute, and those that were acknowledged: if none are, producers there are cut off."
    ),
    "failover_headroom": (
        "The share of the capacity that the fleet file gives the region that takes over, "
        "`recovery.capacities`, that is left once it carries the records a second of both regions. Below "
        "zero it is too small."
    ),
    "failover_reasons": "Why groups are not ready, each with how many of them; a group may have several.",
    "regions_map": (
        "Each arrow is a mirror; its words say for how long at most a record waits to be copied. Solid: "
        "up to date. Dashed: it stands still. Dash and dot: records go round. Dotted: nobody knows."
    ),
    "rpo_trend": (
        "Of each mirror, for how long the oldest record that was not known to have been copied had been "
        "at its source. Solid: at most, as MirrorMaker had told; dashed: by tracers. Hatched: nothing is "
        "known of any mirror. A point is the worst minute of its step."
    ),
    "drills": (
        "Each row is a group of a drill. Forecast: how many records it would read again; measured: how "
        "many it did. Missing: what it had not read and did not lie there. Empty where it was a forecast "
        "alone, or too much to compare."
    ),
    "recovery_weeks": (
        "Over mirrors and groups, by nearest rank, of those with enough coverage; below, who did not "
        "keep to `recovery.objectives`. The open week is to date."
    ),
}
