"""Run real Kafka clusters, faults and the demo on one machine."""
