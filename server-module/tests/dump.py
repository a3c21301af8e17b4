#!/usr/bin/env python3
"""Prints the recorder's memory, summed over its slots, as JSON: dump.py FILE. A tool for tests."""
import json
import struct
import sys

PHASES = ("head", "parse", "process", "upstream", "send", "log")
CPU = ("parse", "process", "log")
BUCKETS = 112
SUMS = struct.Struct("<23Q8x")
CPU_SUMS = struct.Struct("<9Q56x")
TIMES = struct.Struct(f"<{BUCKETS}Q")
SLOT = struct.Struct("<2I9Q48x")
PENDING = struct.Struct("<8Q")
PLACES = 16


def text(data):
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


def percentile(buckets, share):
    """Returns the middle of the histogram bucket that contains a percentile, in µs."""
    total, seen = sum(buckets), 0
    for bucket, count in enumerate(buckets):
        seen += count
        if count and seen >= share * total:
            return ((4 + bucket % 4) + 0.5) * 2 ** (bucket // 4 + 6) / 1000
    return None


def bucket_of(ns):
    octave = ns.bit_length() - 1
    return 0 if ns < 256 else min(4 * octave + (ns >> (octave - 2)) - 36, BUCKETS - 1)


def added(first, second):
    return [a + b for a, b in zip(first, second)]


def add_pending(sums, what, size, times):
    """Adds a pending request to the sums, as the recorder does when it folds."""
    first = sums["first"]
    first[:4] = added(first, (1, size, what >> 8 & 1, what >> 9 & 1))
    first[22] += what >> 32
    for phase, ns in enumerate(times):
        if what >> 16 + phase & 1:
            at = 4 + 3 * phase
            first[at:at + 3] = added(first[at:], (1, ns, ns * ns // 1_000_000))
            sums["times"][phase][bucket_of(ns)] += 1


def summary(sums):
    first, cpu, times = sums["first"], sums["cpu"], sums["times"]
    return {
        "requests": first[0], "bytes": first[1], "failed": first[2], "aborted": first[3],
        "resumed": first[22],
        "cpu_count": cpu[0], "cpu_mixed": cpu[5],
        "blocks_count": cpu[6], "blocks_read": cpu[7], "blocks_written": cpu[8],
        "cpu_us": {name: cpu[1 + i] / 1000 / max(cpu[0], 1) for i, name in enumerate(CPU)},
        "phases": {
            name: {"count": count, "sum_s": ns / 1e9, "mean_us": ns / 1000 / max(count, 1),
                   "p50_us": percentile(t, 0.5), "p99_us": percentile(t, 0.99)}
            for name, count, ns, t in zip(PHASES, first[4:22:3], first[5:22:3], times)
        },
    }


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    (magic, layout, header_size, slot_size, slots, classes, enabled, one_in, most, master, lost,
     _made) = struct.unpack_from("<Q10IQ", data)
    assert magic == 0x316C75666D697262 and layout == 4
    names = [text(data[104 + 48 * i:104 + 48 * (i + 1)]) for i in range(classes)]
    sums = [{"first": [0] * 23, "cpu": [0] * 9, "times": [[0] * BUCKETS for _ in PHASES]} for _ in names]
    workers = []
    for slot in range(slots):
        at = header_size + slot * slot_size
        fields = SLOT.unpack_from(data, at)
        if fields[2] == 0:
            continue
        workers.append(dict(zip(("owner", "thread", "owners", "connections", "in_progress", "busy_since_ns", "busy_ns",
                                 "recorded", "folded", "cpu_ns", "cpu_at_ns"), fields)))
        recorded, folded = fields[7:9]
        for request in range(folded >> 16, recorded):
            what, size, *times = PENDING.unpack_from(data, at + SLOT.size + request % PLACES * PENDING.size)
            add_pending(sums[what & 0xFF], what, size, times)
        at += SLOT.size + PLACES * PENDING.size
        for index, total in enumerate(sums):
            total["first"] = added(total["first"], SUMS.unpack_from(data, at + (folded >> index & 1) * SUMS.size))
            at += 2 * SUMS.size
            total["cpu"] = added(total["cpu"], CPU_SUMS.unpack_from(data, at))
            at += CPU_SUMS.size
            for phase in total["times"]:
                phase[:] = added(phase, TIMES.unpack_from(data, at))
                at += TIMES.size
    return {
        "server": text(data[56:104]), "enabled": enabled, "slots": slots, "cpu_one_in": one_in, "workers_most": most,
        "master_pid": master, "lost": lost, "requests": sum(s["first"][0] for s in sums), "workers": workers,
        "classes": {name: summary(s) for name, s in zip(names, sums)},
    }


if __name__ == "__main__":
    json.dump(read(sys.argv[1]), sys.stdout, indent=1)
    print()
