"""`fleetgauge replay`: keep incidents as files, and evaluate them with the present detection rules."""

#: How the name of an incident file should end.
SUFFIX = ".incident.gz"
