"""The Python package as its users meet it; `scripts/test-python` runs it from the source and from an installed
wheel."""
import signal

# A shell that starts the tests in the background makes them ignore SIGINT. Tests of interrupts would never end.
signal.signal(signal.SIGINT, signal.default_int_handler)
