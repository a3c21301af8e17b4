"""Measurements of brimful, other load generators and published results, side by side; see bench/README.md."""
