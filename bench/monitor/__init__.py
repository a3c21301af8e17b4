"""What watching a server costs and whether it tells the truth, beside the monitors people use; see README.md."""
