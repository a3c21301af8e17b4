"""Measures the cost and the accuracy of the Server Module."""
