"""From raw records to levels and weeks; no module here reads or writes a table."""
