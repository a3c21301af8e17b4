"""How late requests arrive, seen from the server: alike for every generator, whatever it says of itself.

A generator that promised `rate` requests per second should make its k-th request k/rate after its first. The server
notes the arrivals a_k; nobody knows when the generator's schedule began, so that is fitted: the 1st percentile of
a_k - k/rate. A minimum would hang on one odd request, a mean would reward being late always. What is left above it is
the lateness; it does not contain what a generator needs for every request alike. All requests are identical: the k-th
arrival is compared with the k-th due time, also where requests overtook one another, which if anything flatters the
generator.

A generator that spreads its rate over connections (wrk2, h2load) has one schedule per connection, each begun at its own
time; it is judged by these, each fitted for itself. One that leaves requests out, instead of making them late, falls
further and further behind; how many are missing is printed beside the lateness.

Times are in nanoseconds of CLOCK_MONOTONIC, lateness in microseconds.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from .stats import percentile

# Connecting, and warming up of runtimes, are not judged.
WARM_UP_NS = 1_000_000_000
# The percentile that stands for "on time".
ON_TIME = 1


def measure(stamps: Path, rate: float, connections: int | None, seconds: float) -> dict[str, float]:
    """The lateness of one run whose rate was spread over this number of connections (None: one schedule for all)."""
    arrivals = read(stamps)
    if connections is None:
        schedules: Iterable[Sequence[int]] = [[at for at, _ in arrivals]]
        rate_of_one = rate
    else:
        schedules = by_connection(arrivals)
        rate_of_one = rate / connections
    lateness = sorted(us for schedule in schedules for us in against_schedule(schedule, rate_of_one))
    if not lateness:
        return {}
    values = {f"lateness_p{p:g}_us": percentile(lateness, p) for p in (50, 90, 99, 99.9)}
    return values | {"lateness_max_us": lateness[-1], "missing": rate * seconds - len(arrivals)}


def against_schedule(arrivals: Sequence[int], rate: float) -> list[float]:
    """Lateness of the arrivals, in order, that belong to one schedule; those of the warm-up are counted, not judged."""
    period = 1e9 / rate
    behind = [at - k * period for k, at in enumerate(arrivals) if at - arrivals[0] >= WARM_UP_NS]
    if not behind:
        return []
    begun = percentile(sorted(behind), ON_TIME)
    return [(b - begun) / 1000 for b in behind]


def by_connection(arrivals: Iterable[tuple[int, int]]) -> Iterable[list[int]]:
    schedules = defaultdict(list)
    for at, connection in arrivals:
        schedules[connection].append(at)
    return schedules.values()


def read(stamps: Path) -> list[tuple[int, int]]:
    """The server's notes: pairs of time and connection."""
    words = array("Q", stamps.read_bytes())
    return list(zip(words[::2], words[1::2], strict=True))
