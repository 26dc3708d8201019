"""The health-check agent: schedule, send, judge, report.

Pure parts decide (schedule, stalls, standing, answers, throttles, failure, ledger, minute, shard,
topic_plan); cluster_probe acts on one cluster, with bootstraps beside it, reconciler on its topic,
fleet_probe on all. Outlets take their reports, records by courier and spool; metrics and durations are what
/metrics tells of them; run is the process.
"""
