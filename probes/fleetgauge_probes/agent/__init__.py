"""The health-check agent: schedule, send, judge, report.

Pure parts decide (schedule, stalls, standing, ledger, minute, shard, topic_plan);
cluster_probe acts on one cluster, reconciler on its topic, fleet_probe on all; run is the process.
"""
