"""The metrics of cluster-weeks that can be compared; an option's choices, so it imports nothing."""

#: The metrics that can be compared, each with whether a larger value is worse.
METRICS = {
    "latency_p99_us": True,
    "latency_p99_censored_us": True,
    "availability_ratio": False,
    "availability_p99": False,
    "bad_minutes": True,
    "latency_budget_left_minutes": False,
    "availability_spent_minutes": True,
}
