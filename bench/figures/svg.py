"""Line charts as SVG, without a plotting library.

A `Chart` has one x and one y axis, linear from zero or logarithmic, and series of points; `picture` stacks charts
vertically. Colours are those of Okabe & Ito (2008), which colour-blind readers can distinguish; markers differ as well.
"""

import math
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

WIDTH, LEGEND, HEIGHT = 820, 260, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 54
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]
#: For each colour that `draw` writes, the colour that replaces it on a dark background.
DARK = {"#fff": "#15191e", "#222": "#dde3ea", "#ddd": "#3a424c", "#000000": "#ffffff", "#0072b2": "#56a8dc"}
FONT = 'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#222"'


@dataclass
class Series:
    """Points (x, y) of one line, in the order in which it is drawn."""

    name: str
    points: list
    colour: int = 0
    dashed: bool = False
    marked: bool = True
    band: list = field(default_factory=list)  # (x, lowest, highest), drawn as an area behind the line


@dataclass
class Axis:
    """An axis and its label with the unit. Logarithmic axes leave out values that are not positive."""

    label: str
    log: bool = False
    most: float = 0.0


@dataclass
class Chart:
    """One plot with its axes and series."""

    title: str
    x: Axis
    y: Axis
    series: list = field(default_factory=list)


def picture(charts):
    """An SVG document with the charts stacked vertically."""
    height = HEIGHT * len(charts)
    body = [f'<g transform="translate(0 {i * HEIGHT})">\n{draw(chart)}\n</g>' for i, chart in enumerate(charts)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    return "\n".join([head, style(), f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', *body, "</svg>", ""])


def style():
    """Style rules that replace the colours on a dark screen."""
    rules = " ".join(
        f'[{attribute}="{light}"] {{ {attribute}: {dark} }}'
        for light, dark in DARK.items()
        for attribute in ("fill", "stroke")
    )
    return f"<style>@media (prefers-color-scheme: dark) {{ {rules} }}</style>"


def draw(chart):
    """One chart as SVG elements."""
    points = [point for series in chart.series for point in series.points]
    points += [(a, b) for series in chart.series for a, *ends in series.band for b in ends]
    x = Scale(chart.x, [p[0] for p in points], LEFT, WIDTH - LEGEND - RIGHT)
    y = Scale(chart.y, [p[1] for p in points], HEIGHT - BOTTOM, TOP)
    out = [text(LEFT, 22, chart.title, extra='font-weight="bold"')]
    for value in x.ticks:
        out.append(line(x(value), y.start, x(value), y.end, "#ddd"))
        out.append(text(x(value), y.start + 18, number(value), "middle"))
    for value in y.ticks:
        out.append(line(x.start, y(value), x.end, y(value), "#ddd"))
        out.append(text(x.start - 8, y(value) + 4, number(value), "end"))
    out.append(line(x.start, y.start, x.end, y.start, "#222"))
    out.append(line(x.start, y.start, x.start, y.end, "#222"))
    middle = (y.start + y.end) / 2
    out.append(text((x.start + x.end) / 2, HEIGHT - 14, chart.x.label, "middle"))
    out.append(text(16, middle, chart.y.label, "middle", f'transform="rotate(-90 16 {middle:g})"'))
    for row, series in enumerate(chart.series):
        shown = [(x(a), y(b)) for a, b in series.points if x.shows(a) and y.shows(b)]
        if series.band:
            out.append(area([(x(a), y(low), y(high)) for a, low, high in series.band], series.colour))
        out.append(curve(shown, series))
        height, left = TOP + 8 + 20 * row, WIDTH - LEGEND
        out.append(curve([(left, height), (left + 28, height)], series, ends=False))
        out.append(text(left + 36, height + 4, series.name))
    return "\n".join(out)


class Scale:
    """Maps values to pixels."""

    def __init__(self, axis, values, start, end):
        self.start, self.end, self.log = start, end, axis.log
        most = axis.most or max(values, default=1) or 1
        if axis.log:
            least = min((v for v in values if v > 0), default=1)
            first, last = (
                math.floor(math.log10(least)),
                max(math.ceil(math.log10(most)), math.floor(math.log10(least)) + 1),
            )
            self.ticks = [10.0**n for n in range(first, last + 1)]
        else:
            step = nice_step(most)
            self.ticks = [step * n for n in range(math.ceil(most / step - 1e-9) + 1)]
        self.low, self.high = self.place(self.ticks[0]), self.place(self.ticks[-1])

    def place(self, value):
        return math.log10(value) if self.log else value

    def shows(self, value):
        """Whether the value lies inside the plot."""
        return (value > 0 or not self.log) and self.low <= self.place(value) <= self.high

    def __call__(self, value):
        return self.start + (self.end - self.start) * (self.place(value) - self.low) / (self.high - self.low)


def nice_step(most):
    """The tick distance: 1, 2 or 5 times a power of ten, so that 4 to 10 steps reach `most`."""
    power = 10.0 ** math.floor(math.log10(most / 4))
    return max((m * power for m in (1, 2, 5) if m * power <= most / 4), default=power)


def number(value):
    """The label of a tick, with large values in thousands (k)."""
    return f"{value / 1000:g}k" if abs(value) >= 10_000 else f"{value:g}"


def curve(points, series, ends=True):
    """A polyline and its markers."""
    colour = COLOURS[series.colour % len(COLOURS)]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dash = ' stroke-dasharray="5 4"' if series.dashed else ""
    out = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>']
    if series.marked:
        at = points if ends else [((points[0][0] + points[1][0]) / 2, points[0][1])]
        out += [marker(a, b, colour, series.colour) for a, b in at]
    return "\n".join(out)


def area(band, colour):
    """The filled area between the lower and upper ends of intervals."""
    outline = [(a, high) for a, _, high in band] + [(a, low) for a, low, _ in reversed(band)]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in outline)
    return f'<polygon points="{path}" fill="{COLOURS[colour % len(COLOURS)]}" fill-opacity="0.15"/>'


def marker(x, y, colour, shape):
    """A circle, square, triangle or diamond."""
    corners = [
        None,
        [(-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)],
        [(0, -4.5), (4.5, 3.5), (-4.5, 3.5)],
        [(0, -5), (5, 0), (0, 5), (-5, 0)],
    ]
    if corners[shape % 4] is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    path = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners[shape % 4])
    return f'<polygon points="{path}" fill="{colour}"/>'


def line(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def text(x, y, content, anchor="start", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {FONT} {extra}>{escape(content)}</text>'
