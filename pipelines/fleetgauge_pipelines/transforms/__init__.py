"""Definitions of the service levels as DataFrame transformations; no module here reads or writes a table."""
