"""Tests with made-up Records and answers. They start no server."""
