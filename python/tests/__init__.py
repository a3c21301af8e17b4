"""Tests of the Python package. `scripts/test-python` runs them with the source and with an installed wheel."""
import signal

# A shell that starts the tests in the background makes them ignore SIGINT. Then tests of interrupts would never end.
signal.signal(signal.SIGINT, signal.default_int_handler)
