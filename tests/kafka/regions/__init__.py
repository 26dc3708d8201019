"""Tests of two regions with real mirrors, which they share."""
