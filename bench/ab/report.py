"""The tables of the results."""

from collections import defaultdict


def text(document: dict) -> str:
    return "\n\n".join(part for part in (pairs(document["pairs"]), differences(document["differences"])) if part)


def pairs(entries: list[dict]) -> str:
    """One row for each kind of pair."""
    if not entries:
        return ""
    kinds = defaultdict(list)
    for entry in entries:
        kinds[entry["name"], entry["expected"]].append(entry)
    lines = ["| servers | true difference | pairs | any figure differs | CPU per request differs | its interval holds |"]
    lines.append("|---|---|---|---|---|---|")
    for (name, expected), group in kinds.items():
        known = [entry["cpu"]["interval95"] for entry in group if entry["cpu"] and entry["cpu"]["interval95"]]
        cells = [
            name,
            percent(expected),
            str(len(group)),
            str(sum(bool(entry["differs"]) for entry in group)),
            str(sum("cpu" in entry["differs"] for entry in group)),
            f"{sum(low <= expected <= high for low, high in known)} of {len(known)}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def differences(entries: list[dict]) -> str:
    """One row for each difference that `brimful ab` measured."""
    if not entries:
        return ""
    lines = ["| servers | true difference | measured | 95 % interval | time | end | control |"]
    lines.append("|---|---|---|---|---|---|---|")
    for entry in entries:
        cpu, stopping, control = entry["cpu"] or {}, entry["stopping"], entry["control"] or {}
        interval = cpu.get("interval95")
        cells = [
            entry["name"],
            percent(entry["expected"]),
            percent(cpu.get("difference")),
            f"{percent(interval[0])} … {percent(interval[1])}" if interval else "–",
            f"{stopping['elapsed_s']:.0f} s",
            stopping["reason"],
            control.get("outcome", "–"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:+.1f} %"
