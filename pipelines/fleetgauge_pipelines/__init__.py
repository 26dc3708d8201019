"""Turn probe records into service levels that a review can trust."""
