"""The tables, made from stored results."""

from ..side_by_side.stats import spread


def line(repetition: dict) -> str:
    """The progress line of one repetition that has just ended."""
    name = f"{repetition['server']:15}"
    if error := repetition.get("error"):
        return f"{name} {error}"
    ratios = ", ".join(
        f"{mix} {found['ratio']:.3f} ({found['ratio_per_cpu_second']:.3f})"
        for mix, found in repetition["mixes"].items()
    )
    return (
        f"{name} {ratios}; other work {repetition['other_work']:.0%}; load dependence: {repetition['load_dependence']}"
    )


def text(document: dict) -> str:
    """Medians over the repetitions, with the least and the greatest."""
    lines = [
        f"{document['date']}, commit {document['commit']}, "
        f"{document['host']['cpu']}, {document['host']['cores']} cores",
        "Saturation rate predicted from runs at 20, 40 and 60 %, over the rate that closed loops reached: "
        "requests per second, and per CPU second",
        "",
        f"{'server':15} {'mix':8} {'predicted':>9} {'reached':>9} {'busy':>5}  "
        f"{'per second':20}  {'per CPU second':20}",
    ]
    good = [r for r in document["repetitions"] if "error" not in r]
    for server in dict.fromkeys(r["server"] for r in good):
        repetitions = [r for r in good if r["server"] == server]
        for mix in repetitions[0]["mixes"]:
            found = [r["mixes"][mix] for r in repetitions]
            middle = {key: spread([f[key] for f in found])[0] for key in ("predicted", "measured", "busy")}
            lines.append(
                f"{server:15} {mix:8} {middle['predicted']:9.0f} {middle['measured']:9.0f} {middle['busy']:5.2f}  "
                f"{three([f['ratio'] for f in found]):20}  {three([f['ratio_per_cpu_second'] for f in found]):20}"
            )
        held = [holds(r["interval"], r["mixes"]["mix"]) for r in repetitions]
        lines.append(f"{server:15} {sum(held)} of {len(held)} intervals contain the mix's rate per CPU second")
        if "demands" in repetitions[0]:
            for name in repetitions[0]["demands"]:
                found = [r["demands"][name] for r in repetitions]
                covered = sum(f["covered"] for f in found)
                ratios = three([f["ratio"] for f in found])
                lines.append(
                    f"{server:15} estimated demand of {name} over the true one: {ratios}; "
                    f"{covered} of {len(found)} intervals contain the true one"
                )
    absent = {r["server"]: r["error"] for r in document["repetitions"] if "error" in r}
    lines += [f"{server}: {error}" for server, error in absent.items()]
    return "\n".join(lines)


def holds(interval: dict | None, found: dict) -> bool:
    """Whether the interval contains the measured rate, scaled to a server that has its CPU all the time."""
    return interval is not None and interval["low"] <= found["measured"] / found["busy"] <= interval["high"]


def three(values: list[float]) -> str:
    middle, least, greatest = spread(values)
    return f"{middle:.3f} ({least:.3f}–{greatest:.3f})"
