"""How fast access logs are read and what memory that takes, beside GoAccess; see README.md."""
