"""The jobs: from records to weeks, continuously, once, or from files."""
