"""Tests of the arithmetic; `make test` runs them."""
