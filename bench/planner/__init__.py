"""How fast the planner's solvers are, and whether they agree with other people's and with its simulator; see README.md."""
