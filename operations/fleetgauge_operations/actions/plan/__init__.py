"""Decisions on actions as pure functions of a snapshot."""
