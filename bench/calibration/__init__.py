"""Calibrates models of real servers at loads they bear easily, and compares what they predict with what the servers do."""
