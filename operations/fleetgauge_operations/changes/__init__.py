"""What changes in every cluster: observed, reported by people and other systems, and listed."""
