"""Measures the planner's solvers: their speed, and their agreement with its simulator and other solvers; see
README.md."""
