"""The Python package as its users meet it; `scripts/test-python` runs it from the source and from an installed
wheel."""
import signal

# Whoever starts the tests in the background has them ignore it, and those that are interrupted would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
