"""Service level definitions in plain Python; what the pipeline computes by columns must be the same."""
