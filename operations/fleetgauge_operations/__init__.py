"""Name a sick broker within seconds and help to act on it."""
