"""uvicorn without a framework: an ASGI application."""

import gzip
import json
from pathlib import Path
from urllib.parse import parse_qs

ITEMS = json.loads(Path(__file__).with_name("dataset.json").read_text())
TEXT = (b"content-type", b"text/plain")
JSON = (b"content-type", b"application/json")
GZIP = (b"content-encoding", b"gzip")


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    _, route, *rest = scope["path"].split("/")
    match route:
        case "":
            await answer(send, b"")
        case "user":
            await answer(send, rest[0].encode() if rest else b"")
        case "pipeline":
            await answer(send, b"ok")
        case "baseline11":
            body = b"".join([chunk async for chunk in chunks(receive)])
            await answer(send, str(parameter(scope, "a") + parameter(scope, "b") + int(body or 0)).encode())
        case "json":
            body = json.dumps(page(int(rest[0]), parameter(scope, "m"))).encode()
            if any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"]):
                await answer(send, gzip.compress(body, 6), JSON, GZIP)
            else:
                await answer(send, body, JSON)
        case "upload":
            await answer(send, str(sum([len(chunk) async for chunk in chunks(receive)])).encode())
        case _:
            await answer(send, b"", status=404)


def parameter(scope, name):
    return int(parse_qs(scope["query_string"].decode())[name][0])


def page(count, factor):
    items = [item | {"total": item["price"] * item["quantity"] * factor} for item in ITEMS[:count]]
    return {"items": items, "count": len(items)}


async def chunks(receive):
    while True:
        message = await receive()
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


async def answer(send, body, *headers, status=200):
    head = [*(headers or (TEXT,)), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
