"""Code shared by all commands and long-running processes: options, signals, logs and health endpoints."""
