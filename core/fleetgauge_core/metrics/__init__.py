"""Reading of metrics that other processes expose."""
