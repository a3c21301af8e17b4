"""How late requests arrive, measured at the server in the same way for every generator.

A generator with a rate of `rate` requests per second should send its k-th request k/rate after its first. The server
records the arrivals a_k. The start of the schedule is unknown and is estimated as the 1st percentile of a_k - k/rate: a
minimum would depend on a single request, and a mean would hide a constant lateness. Lateness is the time after that
schedule, so a delay that is the same for every request is not in it. Requests are identical: the k-th arrival is
compared with the k-th due time. Where requests overtake one another this can only make the generator look better.

A generator that spreads its rate over connections (wrk2, h2load, zrk) has one schedule per connection, each with its
own start. Each connection's schedule is estimated separately. A generator that leaves requests out is late from then
on; the number of missing requests is printed beside the lateness.

Times are in nanoseconds of CLOCK_MONOTONIC, lateness in microseconds.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from .stats import percentile

# Arrivals in this time after the start are ignored: the generator opens its connections, and just-in-time compilers are
# at work.
WARM_UP_NS = 1_000_000_000
# Percentile of the delays that counts as on time. The lateness of a request is its delay minus this delay.
ON_TIME = 1


def measure(stamps: Path, rate: float, connections: int | None, seconds: float) -> dict[str, float]:
    """The lateness of one run, for a rate spread over this number of connections (None: one schedule for all)."""
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
    """Lateness of the arrivals of one schedule, in order. Arrivals of the warm-up are counted in k, but not
    returned."""
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
    """The arrivals that the server recorded: pairs of time and connection."""
    words = array("Q", stamps.read_bytes())
    return list(zip(words[::2], words[1::2], strict=True))
