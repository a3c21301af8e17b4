"""The command line of `brimful watch`, and its JSON document."""

import json

from ..side_by_side.tools import Failed
from .bed import Bed


def watch(bed: Bed, *flags: object) -> list[str]:
    """The command line. The program prints one JSON document when it ends."""
    return [bed.program("brimful"), "watch", *map(str, flags), "--json"]


def server(printed: str) -> dict:
    """The `server` object of the printed document."""
    try:
        document = json.loads(printed)
    except ValueError:
        raise Failed(f"brimful watch printed no document: {printed[:200]!r}") from None
    return document.get("server", document)


def seconds(server: dict) -> float:
    """The time from the first to the last sample."""
    return sum(interval["length_s"] for interval in server["intervals"])
