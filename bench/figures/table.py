"""Tables of results: tab-separated, one row per measured point.

Lines that begin with `#` have the title, the commands, the servers and the machine. The next line has the names of the
columns with their units in brackets. `COLUMNS` lists all names and units.
"""

# Titles of the table's columns. Shares of a CPU are from 0 to 1; rates are per second, over the measured window.
COLUMNS = {
    "server": "name",
    "series": "name",
    "clients": "1",
    "descriptors": "1",
    "burst": "A×mean for B of the time",
    "offered": "calls/s",
    "seconds": "s",
    "syn": "SYN/s, ActiveOpens + TCPSynRetrans of the only client",
    "syn_repeated": "SYN/s, TCPSynRetrans",
    "accepted": "connections/s, the server's PassiveOpens",
    "dropped": "SYN and ACK/s, the server's ListenDrops",
    "open": "connections that are established on the server's side, at the end of the window",
    "established": "connections/s, as the client sees it, whole run",
    "cookies": "SYN-ACK/s, the server's SyncookiesSent",
    "replies": "replies/s",
    "expected": "replies/s",
    "errors": "% of calls",
    "connect": "ms, mean",
    "response": "ms, mean, first byte sent to first byte received",
    "total": "ms, mean, due to last byte",
    "rounds": "rounds/s of the spinner",
    "work": "share of the work without SYNs",
    "cost_by_work": "µs of CPU per SYN",
    "cost_by_softirq": "µs of CPU per SYN",
    "server_busy": "share of its CPU",
    "server_softirq": "share of its CPU",
    "client_busy": "share of its CPU",
    "steal": "CPUs",
    "server_net_rx": "softirqs/s",
    "client_net_rx": "softirqs/s",
    "server_packets": "packets/s",
    "client_packets": "packets/s",
    "packets_lost": "packets/s",
    "valid": "yes, or the reasons why not",
}


def write(path, notes, rows):
    """Writes the notes, one per line, then the rows: dicts with keys of `COLUMNS`, written in that order."""
    names = sorted({name for row in rows for name in row}, key=list(COLUMNS).index)
    lines = [f"# {note}" for note in notes]
    lines.append("\t".join(f"{name} [{COLUMNS[name]}]" for name in names))
    lines += ["\t".join(cell(row.get(name)) for name in names) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def read(path):
    """The rows of a table as dicts. Numbers become floats; empty cells are left out."""
    header, *lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    names = [name.partition(" [")[0] for name in header.split("\t")]
    return [{n: value(v) for n, v in zip(names, line.split("\t")) if v} for line in lines]


def cell(content):
    if content is None:
        return ""
    return f"{content:.6g}" if isinstance(content, float) else str(content)


def value(content):
    try:
        return float(content)
    except ValueError:
        return content
