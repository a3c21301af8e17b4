"""Draws the pictures from the tables. Each function takes a table's rows and returns the charts of one picture."""

from .hosts import raw_request_rate
from .svg import Axis, Chart, Series, picture
from .syncost import slope, slope_of_ends

NAMES = {"apache": "Apache prefork", "target": "brimful target"}
# The two points of Figure 7 that the paper's text contains (Banga & Druschel 1997, §5.3): at saturation, and at the
# highest rate. They do not agree with the cost of 325 µs per SYN in the text: the points result in 219 µs.
THROUGHPUT_1997 = [(130, 130), (2065, 75)]
# Figure 2 of Mosberger & Jin (1998): reply rate as a function of the offered rate, from the data of the original
# figure.
REPLIES_1998 = [
    (100, 100), (200, 200), (300, 300), (400, 399), (500, 497), (600, 594), (700, 672), (800, 778), (900, 792),
    (1000, 792), (1100, 788), (1200, 781), (1300, 780), (1400, 776), (1500, 772), (1600, 768), (1700, 768), (1800, 763),
    (1900, 761), (2000, 758),
]  # fmt: skip


def pictures(tables):
    """Yields (name, SVG) of each picture whose table exists. `tables` maps a table's name to its rows."""
    for name, (table, charts) in PICTURES.items():
        if table in tables:
            yield name, picture(charts(tables[table]))


def fig5(rows):
    lines = []
    for colour, (server, series) in enumerate(distinct(rows, "server", "series")):
        points = pick(rows, "clients", "syn", server=server, series=series)
        lines.append(Series(f"{NAMES[server]}, {series}", points, colour))
    lines.append(replies_line(rows, "clients"))
    return [Chart("Request rate against simple clients", Axis("clients"), Axis("SYN/s"), lines)]


def fig6(rows):
    lines = by_server(rows, "descriptors", "syn")
    most = max(x for line in lines for x, _ in line.points)
    least = min(x for line in lines for x, _ in line.points)
    lines.append(Series("D / T, T = 500 ms", [(least, least / 0.5), (most, most / 0.5)], 6, dashed=True, marked=False))
    lines.append(replies_line(rows, "descriptors"))
    title = "Request rate against descriptors of S-Clients"
    return [Chart(title, Axis("descriptors", log=True), Axis("SYN/s", log=True), lines)]


def fig7(rows):
    lines = by_server(rows, "syn", "replies")
    for line in list(lines):
        x0, cost = slope(overloaded(line.points))
        ends = [0, max(s for s, _ in line.points)]
        fit = [(s, x0 * (1 - cost * s / 1e6)) for s in ends]
        by_ends = slope_of_ends(from_saturation(line.points))
        name = f"slope: {cost:.1f} µs per SYN; by its ends {by_ends:.1f} µs"
        lines.append(Series(name, fit, line.colour, dashed=True, marked=False))
    lines.append(Series(f"1997, from its text; by its ends {slope_of_ends(THROUGHPUT_1997):.0f} µs", THROUGHPUT_1997, 2))
    return [Chart("Throughput against request rate", Axis("SYN/s"), Axis("replies/s"), lines)]


def fig8(rows):
    charts = []
    for (server,) in distinct(rows, "server"):
        lines = []
        for colour, (burst,) in enumerate(distinct(rows, "burst")):
            lines.append(Series(burst, pick(rows, "offered", "replies", server=server, burst=burst), colour))
        for colour, (burst,) in enumerate(distinct(rows, "burst")):
            points = pick(rows, "offered", "expected", server=server, burst=burst)
            lines.append(Series(f"{burst}, overflow alone", points, colour, dashed=True, marked=False))
        most = max(row["offered"] for row in rows)
        lines.append(Series("no loss", [(0, 0), (most, most)], 6, marked=False))
        title = f"{NAMES[server]}: throughput under bursts (a, b)"
        charts.append(Chart(title, Axis("mean request rate, calls/s"), Axis("replies/s"), lines))
    return charts


def httperf_fig2(rows):
    x = Axis("offered rate, calls/s")
    replies = by_server(rows, "offered", "replies")
    replies.append(Series("1998, Apache 1.3b2", REPLIES_1998, 2, dashed=True, marked=False))
    times = []
    for line, (server,) in zip(by_server(rows, "offered", "response"), distinct(rows, "server")):
        times += [
            Series(f"{line.name}, response", line.points, line.colour),
            Series(f"{line.name}, due to end", pick(rows, "offered", "total", server=server), line.colour, True, False),
            Series(f"{line.name}, connect", pick(rows, "offered", "connect", server=server), line.colour + 3),
        ]
    return [
        Chart("Reply rate", x, Axis("replies/s"), replies),
        Chart("Errors", x, Axis("% of calls", most=100), by_server(rows, "offered", "errors")),
        Chart("Times of the calls that succeeded", x, Axis("ms, mean"), times),
    ]


def syn_cost(rows):
    lines = [
        Series(series, [(0, 1), *pick(rows, "syn", "work", series=series)], colour)
        for colour, (series,) in enumerate(distinct(rows, "series"))
    ]
    title = "What a full accept queue leaves of the server's CPU"
    return [Chart(title, Axis("SYN/s, all dropped"), Axis("share of the work without SYNs", most=1), lines)]


def client_hosts(rows):
    lines = [
        Series(series, pick(rows, "offered", "replies", series=series), colour)
        for colour, (series,) in enumerate(distinct(rows, "series"))
    ]
    one, two = (dict(pick(rows, "offered", "replies", series=series)) for series in ("one host", "two hosts"))
    title = f"Throughput of nginx by one client host and two; they agree up to {raw_request_rate(one, two):,.0f}/s"
    return [Chart(title, Axis("attempts/s, scheduled"), Axis("replies/s"), lines)]


def wide(rows):
    charts = []
    for (server,) in distinct(rows, "server"):
        places = list(enumerate(distinct(rows, "series")))
        for title, y in (("throughput", "replies"), ("connections in progress", "open")):
            lines = [
                Series(series, pick(rows, "syn", y, server=server, series=series), colour)
                for colour, (series,) in places
            ]
            axis = Axis("replies/s") if y == "replies" else Axis("established connections")
            charts.append(Chart(f"{NAMES[server]}: {title} in a wide area", Axis("SYN/s"), axis, lines))
    return charts


PICTURES = {
    "fig5": ("fig5", fig5),
    "fig6": ("fig6-7", fig6),
    "fig7": ("fig6-7", fig7),
    "fig8": ("fig8", fig8),
    "httperf-fig2": ("httperf-fig2", httperf_fig2),
    "client-hosts": ("client-hosts", client_hosts),
    "syn-cost": ("syn-cost", syn_cost),
    "wide": ("wide", wide),
}


def by_server(rows, x, y):
    """One line per server."""
    return [
        Series(NAMES[s], pick(rows, x, y, server=s), colour) for colour, (s,) in enumerate(distinct(rows, "server"))
    ]


def replies_line(rows, x):
    """The reply rate of the first server, for comparison with the request rate."""
    server = rows[0]["server"]
    points = sorted({a: b for a, b in pick(rows, x, "replies", server=server)}.items())
    return Series(f"replies of {NAMES[server]}", points, 5, dashed=True, marked=False)


def overloaded(points):
    """The points well past saturation: more than twice as many SYNs as replies."""
    return [(s, x) for s, x in points if s > 2 * x]


def from_saturation(points):
    """The points from the one with the highest throughput on, in the order of their SYN rates."""
    ordered = sorted(points)
    best = max(range(len(ordered) - 1), key=lambda at: ordered[at][1])
    return ordered[best:]


def pick(rows, x, y, **where):
    """Points (x, y) of the rows that have both columns and match `where`."""
    return [
        (row[x], row[y]) for row in rows if x in row and y in row and all(row.get(k) == v for k, v in where.items())
    ]


def distinct(rows, *names):
    """The distinct combinations of these columns' values, in the order of their first row."""
    return list(dict.fromkeys(tuple(row[name] for name in names) for row in rows))
