"""`fleetgauge watch`: the live detector. Reads pulses, folds them, tells whoever must know. No JVM."""
