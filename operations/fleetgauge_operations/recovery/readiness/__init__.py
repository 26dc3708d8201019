"""Whether the other region is ready, minute by minute: kept in tables, and told where it is not."""
