"""Compares load generators; see bench/README.md."""
