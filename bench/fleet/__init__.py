"""Measures the cost of a fleet, and how precisely its shards start together."""
