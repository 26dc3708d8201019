"""The health-check agent: schedule, send, judge, report.

Pure parts decide (schedule, standing, ledger, minute, pulse, topic_plan);
cluster_probe acts on one cluster, reconciler on its topic, run on all of them.
"""
