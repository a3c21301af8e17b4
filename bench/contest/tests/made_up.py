"""Minimal Records and results for tests."""


def record(*codes: str, completed: float = 1000.0, idle: float = 0.0, cores: float = 0.98, errors: float = 0.0) -> dict:
    """A Record of a server on CPU 0 that answered 1,000 requests/s and was the limit."""
    return {
        "rates": {"completed": completed},
        "response_time_us": {"p50": 800.0, "p99": 2500.0},
        "verdict": {
            "valid": not codes,
            "error_share": errors,
            "reasons": [{"code": code, "message": f"{code}: do this."} for code in codes],
        },
        "generator": {"busy": 0.4},
        "server": {"cores": [{"cpu": 1, "idle": 0.6}, {"cpu": 0, "idle": idle}], "process": [{"cores": cores}]},
    }


def row(framework: str, rate: float = 1000.0, repetition: int = 0, **more: object) -> dict:
    """The figures of a run that counts."""
    return {
        "framework": framework,
        "case": "root",
        "connections": 64,
        "repetition": repetition,
        "rate": rate,
        "p50_us": 800.0,
        "p99_us": 2500.0,
        "error_share": 0.0,
        "cpu_us_per_request": 980.0,
        "server_busy": 1.0,
        "client_busy": 0.4,
        "valid": True,
        "messages": [],
        "doubt": None,
    } | more


def pair(a: str, b: str, differs: bool | None) -> dict:
    return {"case": "root", "connections": 64, "a": a, "b": b, "differs": differs}


def document(rows: list[dict], comparisons: list[dict]) -> dict:
    absent = {"starlette": "starlette is missing: pip install starlette"}
    return {"cases": {"root": "the-benchmarker"}, "absent": absent, "runs": rows, "comparisons": comparisons}
