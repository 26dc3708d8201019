"""Spark jobs that turn probe records into weekly service levels: streaming, one-shot, backfill and replay."""
