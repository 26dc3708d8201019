"""Mitigation: actions on an unhealthy broker, guarded by fail-safes, audited, verified and undone."""
