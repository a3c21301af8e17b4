"""What a fleet costs, and how exactly its shards begin together."""
