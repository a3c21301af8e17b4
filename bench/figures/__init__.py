"""Measures the figures of two papers again on this machine.

Banga & Druschel 1997, "Measuring the Capacity of a Web Server", Figures 5 to 8 and the cost of a dropped SYN (§5.3);
Mosberger & Jin 1998, "httperf", Figure 2. Run it with `python3 -m bench.figures` from the top of the checkout.
"""
