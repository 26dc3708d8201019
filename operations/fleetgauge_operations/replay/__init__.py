"""`fleetgauge replay`: incidents kept as files, and every rule run over all of them once more."""
