"""Tests of the Python package. `scripts/test-python` runs them with the source and with an installed wheel."""
import signal

# If a shell starts the tests in the background, they ignore SIGINT, and tests of interrupts would never end.
signal.signal(signal.SIGINT, signal.default_int_handler)
