"""Run real Kafka clusters, inject faults into them, and run the demo, all on one machine."""
