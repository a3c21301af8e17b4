"""The order of the frameworks in one case at one number of connections.

A framework has a rank only if most of its runs reached the limit of the server. Its rank is one more than the number of
ranked frameworks that are faster, where `brimful compare` shows the difference. So frameworks that cannot be
distinguished may share a rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from ..monitor.stats import trimmed_mean


@dataclass
class Standing:
    """One framework: its figures, means over the runs that count, and its rank or the reason why it has none."""

    framework: str
    runs: int
    counted: int
    figures: dict[str, float | None]
    # Half the width of the 95 % interval of the rate; None with a single run.
    half_width: float | None
    reason: str | None
    # The first message of brimful's verdict about a run that does not count.
    message: str | None
    rank: int | None = None
    ties: list[str] = field(default_factory=list)


FIGURES = ("rate", "p50_us", "p99_us", "error_share", "cpu_us_per_request", "server_busy", "client_busy")


def standings(rows: Sequence[dict], comparisons: Sequence[dict]) -> list[Standing]:
    """The frameworks of one case at one number of connections: those with a rank first, then the others, each by
    rate."""
    names = dict.fromkeys(row["framework"] for row in rows)
    found = [standing([row for row in rows if row["framework"] == name]) for name in names]
    ranked = [one for one in found if one.reason is None]
    for one in ranked:
        differing = [other for other in ranked if other is not one and differs(comparisons, one, other)]
        one.rank = 1 + sum(other.figures["rate"] > one.figures["rate"] for other in differing)
        one.ties = [other.framework for other in ranked if other is not one and other not in differing]
    return sorted(found, key=lambda one: (one.rank is None, -(one.figures.get("rate") or 0)))


def standing(rows: Sequence[dict]) -> Standing:
    """The standing of one framework, without its rank. Without a rank, the figures are those of all finished runs."""
    finished = [row for row in rows if "error" not in row]
    good = counted(rows)
    reason = None if good else first_reason(rows)
    shown = good or finished
    figures = {name: mean([row[name] for row in shown]) for name in FIGURES}
    estimate = trimmed_mean([row["rate"] for row in shown]) if len(shown) > 1 else None
    half_width = (estimate.high - estimate.low) / 2 if estimate else None
    message = next((text for row in finished if reason for text in row["messages"]), None)
    return Standing(rows[0]["framework"], len(rows), len(good), figures, half_width, reason, message)


def counted(rows: Sequence[dict]) -> list[dict]:
    """The runs of one framework that reached the limit of the server; none if they are not most of its runs."""
    good = [row for row in rows if "error" not in row and row["doubt"] is None]
    return good if 2 * len(good) > len(rows) else []


def first_reason(rows: Sequence[dict]) -> str:
    """The reason of the first run that does not count, and the number of such runs."""
    reasons = [reason for row in rows if (reason := row.get("error") or row["doubt"])]
    return reasons[0] if len(rows) == 1 else f"{reasons[0]}; {len(reasons)} of {len(rows)} runs do not count"


def differs(comparisons: Sequence[dict], one: Standing, other: Standing) -> bool:
    names = {one.framework, other.framework}
    return any(pair["differs"] for pair in comparisons if {pair["a"], pair["b"]} == names)


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def pairs_that_tie(found: Sequence[Standing]) -> list[tuple[str, str]]:
    """The pairs of ranked frameworks that cannot be distinguished, in the order of the table."""
    names = [one.framework for one in found]
    return [
        (one.framework, name) for place, one in enumerate(found) for name in names[place + 1 :] if name in one.ties
    ]
