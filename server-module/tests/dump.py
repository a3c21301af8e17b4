#!/usr/bin/env python3
"""Prints what stands in the recorder's memory, summed over its slots, as JSON: dump.py FILE. A tool for tests."""
import json
import struct
import sys

PHASES = ("head", "parse", "process", "upstream", "send", "log")
CPU = ("parse", "process", "log")
BUCKETS = 112
CLASS = struct.Struct("<22Q80x")
TIMES = struct.Struct(f"<{BUCKETS}Q")
SLOT = struct.Struct("<2I7Q64x")


def text(data):
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


def percentile(buckets, share):
    """The middle of the bucket that holds it, in µs."""
    total, seen = sum(buckets), 0
    for bucket, count in enumerate(buckets):
        seen += count
        if count and seen >= share * total:
            return ((4 + bucket % 4) + 0.5) * 2 ** (bucket // 4 + 6) / 1000
    return None


def summary(sums):
    first, times = sums["first"], sums["times"]
    return {
        "requests": first[0], "bytes": first[1], "failed": first[14], "aborted": first[15],
        "cpu_count": first[16], "cpu_mixed": first[21],
        "cpu_us": {name: first[17 + i] / 1000 / max(first[16], 1) for i, name in enumerate(CPU)},
        "phases": {
            name: {"count": sum(t), "sum_s": ns / 1e9, "mean_us": ns / 1000 / max(sum(t), 1),
                   "p50_us": percentile(t, 0.5), "p99_us": percentile(t, 0.99)}
            for name, ns, t in zip(PHASES, first[2:14:2], times)
        },
    }


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    (magic, layout, header_size, slot_size, slots, classes, enabled, one_in, most, master, lost,
     _made) = struct.unpack_from("<Q10IQ", data)
    assert magic == 0x316C75666D697262 and layout == 2
    names = [text(data[104 + 48 * i:104 + 48 * (i + 1)]) for i in range(classes)]
    sums = [{"first": [0] * 22, "times": [[0] * BUCKETS for _ in PHASES]} for _ in names]
    workers = []
    for slot in range(slots):
        at = header_size + slot * slot_size
        fields = SLOT.unpack_from(data, at)
        if fields[2] == 0:
            continue
        workers.append(dict(zip(("owner", "thread", "owners", "connections", "in_progress", "busy_since_ns", "busy_ns",
                                 "cpu_ns", "cpu_at_ns"), fields)))
        at += SLOT.size
        for total in sums:
            total["first"] = [a + b for a, b in zip(total["first"], CLASS.unpack_from(data, at))]
            at += CLASS.size
            for phase in total["times"]:
                values = TIMES.unpack_from(data, at)
                phase[:] = [a + b for a, b in zip(phase, values)]
                at += TIMES.size
    return {
        "server": text(data[56:104]), "enabled": enabled, "slots": slots, "cpu_one_in": one_in, "workers_most": most,
        "master_pid": master, "lost": lost, "requests": sum(s["first"][0] for s in sums), "workers": workers,
        "classes": {name: summary(s) for name, s in zip(names, sums)},
    }


if __name__ == "__main__":
    json.dump(read(sys.argv[1]), sys.stdout, indent=1)
    print()
