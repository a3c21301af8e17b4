"""The networks to solve, as documents of brimful's model. They are the same in every run."""

import random

THINK_S = 10.0


def closed(classes: int, stations: int, population: int, number: int = 0) -> dict:
    """A random closed network of single servers with demands of 0.1 to 1 s. `number` selects one of this size."""
    chance = random.Random(f"{classes} {stations} {population} {number}")
    return {
        "stations": [{"name": f"station {k}", "type": "queue"} for k in range(stations)],
        "classes": [
            {"name": f"class {c}", "type": "closed", "population": population, "think": THINK_S} for c in range(classes)
        ],
        "demands": [[round(chance.uniform(0.1, 1), 4) for _ in range(classes)] for _ in range(stations)],
    }


def web_server() -> dict:
    """The server of Menascé, Peraino, Dinh & Dinh (1999), Tables 1 and 2, at 120 requests per second."""
    shares = (0.4576, 0.4347, 0.0878, 0.0199)
    rows = {
        "CPU": (0.4, 8.52, 64.76, 334.4),
        "Disk1": (0.74, 0.74, 0.74, 0.74),
        "Disk2": (0.67, 0.67, 0.67, 0.67),
        "Disk3": (1.74, 1.84, 13.99, 72.25),
        "In-link": (0.036, 0.036, 0.036, 0.036),
        "Out-link": (0, 0.409, 2.103, 5.333),
    }
    return {
        "stations": [{"name": name, "type": "queue", "servers": 2 if name == "CPU" else 1} for name in rows],
        "classes": [
            {"name": f"class{i}", "type": "open", "rate": 120 * share} for i, share in enumerate(shares, start=1)
        ],
        "demands": [[milliseconds / 1000 for milliseconds in row] for row in rows.values()],
    }


def one_queue() -> dict:
    """An M/M/1 queue under processor sharing, with a utilization of 80 %."""
    return {
        "stations": [{"name": "server", "type": "queue"}],
        "classes": [{"name": "requests", "type": "open", "rate": 80}],
        "demands": [[0.01]],
    }


def busy_server() -> dict:
    """Four classes at six stations, by processor sharing or in order of arrival. The highest utilization is 80 %."""
    stations = zip((4, 1, 1, 2, 1, 1), ("ps", "fcfs") * 3, strict=True)
    return {
        "stations": [
            {"name": f"station {k}", "type": "queue", "servers": servers, "scheduling": order}
            for k, (servers, order) in enumerate(stations)
        ],
        "classes": [{"name": f"class {c}", "type": "open", "rate": rate} for c, rate in enumerate((40, 30, 20, 10))],
        "demands": [
            [demand * factor for factor in (1, 1.5, 0.5, 2)] for demand in (0.0278, 0.006, 0.004, 0.012, 0.005, 0.001)
        ],
    }
