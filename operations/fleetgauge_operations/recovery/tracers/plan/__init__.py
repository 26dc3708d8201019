"""Tracer records and the delays computed from them. Pure."""
