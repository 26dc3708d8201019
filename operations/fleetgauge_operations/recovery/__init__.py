"""Going on in another region: where a group's position lies there, what it re-reads, what it would lose."""
