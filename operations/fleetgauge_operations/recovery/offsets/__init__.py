"""Offset translation between mirrored clusters, from the offset syncs observed so far. Pure."""
