"""Measurements of brimful against other load generators, and against the papers it stands on; see bench/README.md."""
