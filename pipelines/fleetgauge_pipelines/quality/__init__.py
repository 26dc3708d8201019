"""great-expectations as a gate: expectations on a batch's aggregates, never on its rows."""
