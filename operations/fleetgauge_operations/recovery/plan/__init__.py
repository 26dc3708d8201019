"""Decisions and forecasts about moving consumer groups between clusters. Pure."""
