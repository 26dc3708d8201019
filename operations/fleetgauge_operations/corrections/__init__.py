"""Corrections: minutes that a person takes out of the levels, on record with author and reason."""
