"""Comparisons of observations of a cluster, without any client."""
