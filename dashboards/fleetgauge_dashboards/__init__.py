"""Show a fleet's service levels, from the weekly trend to a single minute."""
