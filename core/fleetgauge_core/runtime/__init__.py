"""What every command and long-running process shares: options, signals, logs, health endpoints."""
