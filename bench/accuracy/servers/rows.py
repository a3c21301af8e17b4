"""An ASGI application without a framework: 100 rows as JSON, built for every request."""

import json


async def app(scope: dict, _receive: object, send: object) -> None:
    if scope["type"] != "http":
        return
    rows = [
        {"id": i, "name": f"item {i}", "price": i * 1.25, "tags": ["new", "sale"], "stock": {"here": i % 7}}
        for i in range(100)
    ]
    body = json.dumps(rows).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
