"""The probe agent: schedules probes, sends them, judges their outcomes and reports them.

Pure modules decide: ``schedule``, ``process_pauses``, ``leader_eligibility``, ``cold_connections``,
``throttles``, ``period_history``, ``failure_code``, ``probe_tracker``, ``minute`` and ``topic_plan``.
``cluster_probe`` runs the threads of one cluster on a shared ``cluster_state``: ``registration``,
``topic_observer``, ``probe_sender``, ``minute_reporter`` and ``pulse_builder``. ``fleet_probe`` covers all
clusters, ``report_publisher`` delivers their reports through ``spool`` and ``spool_forwarder``, and ``run``
is the process.
"""
