"""`fleetgauge replay`: keep incidents as files, and evaluate them with the present detection rules."""
