"""Load generators side by side; see bench/README.md."""
