"""Calibrates models of real servers at loads they bear easily, and compares what they foretell with what the servers do."""
