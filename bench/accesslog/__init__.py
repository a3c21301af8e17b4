"""Speed and memory of reading access logs, compared with GoAccess; see README.md."""
