"""The service levels in plain Python: the definitions that Spark must agree with."""
