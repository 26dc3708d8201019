"""Recovery plans: group offsets to write, failover forecasts and failback reports. Pure."""
