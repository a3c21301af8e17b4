"""Tests of the reading and the tables, with made-up surveys; `make test` runs them."""
