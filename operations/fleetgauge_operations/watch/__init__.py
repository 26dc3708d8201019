"""`fleetgauge watch`: detect faults from probe pulses and notify people about them. Needs no JVM."""
