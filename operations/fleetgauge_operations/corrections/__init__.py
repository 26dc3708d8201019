"""Corrections: minutes that a person excludes from the service levels, stored with author and reason."""
