"""Service level definitions in plain Python; the Spark jobs must return the same values."""
