"""Calibrates models of real servers well below saturation, and compares their predictions with measurements."""
