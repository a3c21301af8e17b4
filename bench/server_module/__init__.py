"""What the Server Module costs, and whether what it says is so."""
