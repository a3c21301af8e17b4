"""Measures the cost and the accuracy of watching a server, compared with other monitors; see README.md."""
