"""Check whether this machine meets the requirements of the demo."""
