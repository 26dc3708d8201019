"""The health-check agent: schedule, send, judge, report.

Pure parts decide (schedule, stalls, standing, answers, throttles, failure, ledger, minute, shard,
topic_plan); cluster_probe acts on one cluster, reconciler on its topic, fleet_probe on all; outlets take
what they find, records by courier and spool; run is the process.
"""
