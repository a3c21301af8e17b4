"""Tests of the reading and the tables, on surveys made up for them; `make test` runs them."""
