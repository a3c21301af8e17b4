"""Web frameworks under the cases of two public contests, each with a verdict; see README.md."""
