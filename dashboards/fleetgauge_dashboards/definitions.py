"""The definitions of the displayed numbers and charts, shown as help texts and in reviews."""

DEFINITIONS = {
    "age": (
        "Time since the end of the newest measured minute of any cluster. A minute's record arrives about "
        "one minute after the minute ends; data older than 3 minutes is marked as stale."
    ),
    "recent_coverage": (
        "Measured broker-minutes divided by expected broker-minutes, over the last hour of data. A minute "
        "without a record is expected but not measured: missing data does not count as healthy."
    ),
    "fleet_latency": (
        "Each cluster has one value per week: the p99 over its minutes of the latency p99 of the minute's "
        "worst broker, measured from the scheduled send of a probe until it is consumed. Median, p90 and "
        "p99 are taken over the clusters with at least 90% coverage by nearest rank, so each is the value "
        "of an actual cluster."
    ),
    "fleet_availability": (
        "Each cluster's successful probes divided by its attempted probes in the week. A probe succeeds if "
        "it is acknowledged within 5 s and consumed within 10 s of its scheduled send. Quantiles count from "
        "the low end: 99% of clusters are at or above the p99."
    ),
    "fleet_availability_p99": (
        "Each cluster has one value per week: the availability that 99% of its minutes reach or exceed, "
        "where a minute's availability is that of its worst broker. Quantiles count from the low end."
    ),
    "fleet_budget": (
        "Remaining latency error budget: 1% of the week's expected minutes, less the bad minutes so far. A "
        "negative value means that the latency objective is missed. Quantiles count from the low end."
    ),
    "latency_p99": (
        "The p99 over the week's minutes, by nearest rank, of the latency p99 of the minute's worst broker. "
        "Latency is measured from the scheduled send of a probe until it is consumed, for successful "
        "probes. With failures included, a failed probe counts as 10,000 ms, so that an outage cannot lower "
        "the value."
    ),
    "latency_budget": (
        "The latency error budget is 1% of the week's expected minutes. A minute is bad if the p99 of its "
        "worst broker, with failed probes counted as 10,000 ms, exceeds the latency objective."
    ),
    "availability_ratio": (
        "Successful probes divided by attempted probes in the week. The availability error budget is the "
        "share of probes that may fail under the objective, expressed as minutes of full outage."
    ),
    "coverage": (
        "Measured broker-minutes divided by expected broker-minutes, client leg. A broker-minute is "
        "measured if at least 50 probes were attempted in it. A week with less than 90% coverage is "
        "excluded from the fleet's quantiles."
    ),
    "latency_chart": (
        "Each point is the p99 of the minute's worst broker. Solid line: successful probes only. Dashed "
        "line: failed probes counted as 10,000 ms. A triangle marks a minute over the objective; hatching "
        "marks time that was not measured."
    ),
    "availability_chart": "Successful probes divided by attempted probes of all brokers in the minute.",
    "heatmap": (
        "One row per broker, one cell per time step. Client leg: what clients of the partitions led by that "
        "broker experience; one slow or failing broker also shows in the rows of brokers whose partitions "
        "it replicates. Leader leg: what the broker does alone; use it to identify the faulty broker. A "
        "failed probe counts as its deadline. Hatching: not measured, which is neither good nor bad."
    ),
    "leader_lines": (
        "The p99 acknowledgement latency of successful leader-leg probes, which only the broker itself has "
        "to acknowledge (acks=1). The line of a slow broker departs from the others; a cross marks time in "
        "which its probes fail."
    ),
    "minute_latency": (
        "The p99 of the minute's worst broker over successful probes, measured from the scheduled send "
        "until the message is consumed. The minute is bad if the p99 with failed probes counted as 10,000 "
        "ms exceeds the objective."
    ),
    "minute_availability": (
        "Successful probes divided by attempted probes of the minute's worst broker, client leg. Pooled: "
        "the same over the probes of all brokers."
    ),
    "minute_measured": (
        "Brokers with at least 50 attempted client-leg probes in the minute, out of the brokers expected in "
        "the cluster."
    ),
    "samples": (
        "A broker's probes side by side, fastest on the left, slowest on the right. A cross at the deadline "
        "is a failed probe. The bar marks the p99 of successful probes by nearest rank, which is the "
        "latency of an actual probe."
    ),
    "client_leg": (
        "What clients of the partitions led by this broker experience: probes acknowledged by all in-sync "
        "replicas (acks=all) and consumed. One slow or failing broker also shows on the client legs of "
        "other brokers, because their leaders wait for it as an in-sync follower."
    ),
    "failures": (
        "Probes that were not acknowledged within 5 s or not consumed within 10 s of their scheduled send, "
        "by the error reported by the Kafka client or the probe."
    ),
    "reasons": (
        "Why probes failed, as reported by the Kafka client or the probe: the number of failed probes on "
        "each leg, and the first and last minute with that error. A new connection is attempted every "
        "second; where its error explains why no connection is possible, timeouts are listed under that "
        "error."
    ),
    "lost": (
        "Messages that the broker acknowledged and that were not consumed within their deadline. A message "
        "consumed twice is a producer retry, not a loss."
    ),
    "led_by": (
        "Minutes during part of which another broker led this broker's probe partition, for example after a "
        "restart, a failure or a demotion."
    ),
    "gates": (
        "Checks that every pipeline batch must pass before it updates its tables, and every week before it "
        "is written. If a check fails, the last good state stays in place."
    ),
    "quarantine": (
        "Records that were rejected, by reason. No record is discarded: each is kept as received in the "
        "table ops/quarantine."
    ),
    "losses": (
        "Records that expired, or whose topic was deleted, before the pipeline could read them. Minutes that "
        "nobody else measured lower the coverage of their cluster."
    ),
    "lateness": (
        "Time from the end of a minute until its record was written to bronze, over the last hour of data. "
        "A late record updates its minute and an open week; a closed week gets a new revision."
    ),
    "revisions": (
        "A week closes 48 h after its end. A late record, correction or recomputation after that creates a "
        "new revision with its reason; earlier revisions are kept."
    ),
    "worst_homes": (
        "Each minute or time step is marked in the row of the broker with the highest p99; orange marks a "
        "minute over the objective. A row with many marks is a broker to investigate."
    ),
    "skew": (
        "The p99 of the slowest broker divided by the p99 of the median broker, leader leg, in each minute. "
        "1 means that all brokers are equally fast; after a rebalance, the line shows how quickly they "
        "become so again (Kora paper, figure 5)."
    ),
    "burn_down": (
        "Remaining latency error budget: the week's budget less the bad minutes so far. Above the dashed "
        "line the budget outlasts the week, below it the budget runs out before the week ends. Minutes that "
        "a correction excludes for the whole cluster are not counted."
    ),
    "segments": (
        "Quantiles over the clusters of each segment value, defined as for the whole fleet. With fewer than "
        "100 clusters the p99 is the value of the worst cluster."
    ),
    "alert_history": (
        "Alerts that have cleared, with the time at which each opened and cleared. The evidence is what was "
        "observed at each change of state."
    ),
    "alerts_named": (
        "Alerts that opened since the start of the week. A suspicion that was not confirmed is not an alert."
    ),
    "precision": (
        "Share of alerts judged as right among the alerts that operators judged. Judge an alert in its row, "
        "below its evidence. Alerts without a judgement are not counted."
    ),
    "time_to_detect": "Time from the first sign of a problem until its alert opened, over the week's alerts.",
    "time_to_acknowledge": (
        "Time from the opening of an alert until an operator acknowledged it, over the week's alerts."
    ),
    "causes": (
        "Bad minutes of all clusters by cause: the finding that was open at the time, maintenance, a "
        "problem of the probes' vantage, or unknown. Each bad minute has exactly one cause."
    ),
    "recovery_mirrors": (
        "Mirrors with new replication data within `recovery.limits.stale_s`, out of all mirrors. A stalled "
        "mirror has copied nothing for longer although its source has more records; a looping mirror "
        "returns tracers to the cluster where they were produced. A mirror without a report for 3 minutes "
        "does not count as up to date."
    ),
    "recovery_rpo": (
        "Recovery point: the age of the oldest source record that is not confirmed as copied, of the mirror "
        "that is furthest behind. It is what a failover would lose, in seconds. The upper bound relies on "
        "MirrorMaker's offset syncs, which arrive late; the estimate relies on tracers, which are probe "
        "records of Fleetgauge."
    ),
    "recovery_groups": (
        "Consumer groups that could continue in the other cluster now, out of all groups in the fleet file: "
        "every partition has an offset to continue from, and the records to be read again or lost are "
        "within `recovery.limits`. Sorted by: not ready first, then most records lost, then most records "
        "read again."
    ),
    "recovery_findings": (
        "Open findings that speak against a failover. A page needs immediate action; a ticket can wait."
    ),
    "recovery_drill": (
        "The newest result of `fleetgauge recover drill`. READY: every group was ready. Executed: offsets "
        "were written and records were read in the other cluster; otherwise the result is a forecast."
    ),
    "failover": (
        "YES: every group is ready, every mirror into the target cluster is up to date, no finding of "
        "severity page is open, and, where they are configured, producers reach the target region (tracers) "
        "and its capacity suffices. NO: one of these does not hold. UNKNOWN: one of them is unknown, "
        "or there was no report for 3 minutes; an unknown condition never counts in favour. A mirror or "
        "finding of a source cluster that cannot be reached does not count against a failover."
    ),
    "failover_replay": (
        "Upper bound of records that would be read again: all records in the target cluster after the "
        "offset from which each group continues. Summed over groups; a record that two groups read counts "
        "twice."
    ),
    "failover_lost": (
        "Upper bound of records that would be lost: source records that are not confirmed as copied. Summed "
        "over groups; a record that two groups read counts twice."
    ),
    "failover_rto": (
        "Recovery time of the slowest group: to decide, to write its offsets and to read the first record, "
        "as measured in executed drills."
    ),
    "failover_mirrors": (
        "Mirrors into the target cluster. Silent: the time since new replication data was last learned."
    ),
    "failover_producers": (
        "Tracers sent from each vantage to the clusters of the target region in the newest minute, and how "
        "many were acknowledged. If none were, producers there cannot reach the target region."
    ),
    "failover_headroom": (
        "Share of the target region's capacity (`recovery.capacities` in the fleet file) that remains when "
        "it carries the record rate of both regions. Negative means that its capacity is too small."
    ),
    "failover_reasons": (
        "Why groups are not ready, and the number of groups with each reason. A group may have several "
        "reasons."
    ),
    "regions_map": (
        "Each arrow is a mirror, labelled with its RPO upper bound. Solid: up to date. Dashed: stalled. "
        "Dash-dotted: records loop. Dotted: unknown."
    ),
    "rpo_trend": (
        "RPO of each mirror: the age of the oldest source record that was not confirmed as copied. Solid: "
        "upper bound by MirrorMaker's offset syncs. Dashed: estimate by tracers. Hatched: no data of any "
        "mirror. Each point is the worst minute of its time step."
    ),
    "drills": (
        "One row per group and drill. Forecast: records expected to be read again; measured: records that "
        "were. Missing: records not yet consumed in the source that were absent in the target cluster. "
        "Empty for a forecast, or if there were too many records to compare."
    ),
    "recovery_weeks": (
        "Quantiles over mirrors and groups with sufficient coverage, by nearest rank; below them, the "
        "mirrors and groups that missed an objective of `recovery.objectives`. The open week is shown to "
        "date."
    ),
}
