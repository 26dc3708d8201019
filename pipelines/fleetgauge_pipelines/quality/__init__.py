"""The quality gate: great-expectations suites on a batch's aggregates, never on its rows."""
