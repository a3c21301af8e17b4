"""`brimful watch` as the cases run it, and its one document."""

import json

from ..side_by_side.tools import Failed
from .bed import Bed


def watch(bed: Bed, *flags: object) -> list[str]:
    """Its command line; what it says of its figures is one JSON document at the end."""
    return [bed.program("brimful"), "watch", *map(str, flags), "--json"]


def server(printed: str) -> dict:
    """The `server` object that it prints."""
    try:
        document = json.loads(printed)
    except ValueError:
        raise Failed(f"brimful watch printed no document: {printed[:200]!r}") from None
    return document.get("server", document)


def seconds(server: dict) -> float:
    """How long it was watched for: from its first to its last sample."""
    return sum(interval["length_s"] for interval in server["intervals"])
