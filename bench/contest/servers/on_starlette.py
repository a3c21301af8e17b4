"""Starlette on uvicorn."""

import json
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route

ITEMS = json.loads(Path(__file__).with_name("dataset.json").read_text())


async def root(_):
    return PlainTextResponse("")


async def user(request):
    return PlainTextResponse(request.path_params["id"])


async def pipeline(_):
    return PlainTextResponse("ok")


async def baseline(request):
    query = request.query_params
    return PlainTextResponse(str(int(query["a"]) + int(query["b"]) + int(await request.body() or 0)))


async def page(request):
    count, factor = request.path_params["count"], int(request.query_params["m"])
    items = [item | {"total": item["price"] * item["quantity"] * factor} for item in ITEMS[:count]]
    return JSONResponse({"items": items, "count": len(items)})


async def upload(request):
    return PlainTextResponse(str(sum([len(chunk) async for chunk in request.stream()])))


app = Starlette(
    routes=[
        Route("/", root),
        Route("/user/{id}", user),
        Route("/user", root, methods=["POST"]),
        Route("/pipeline", pipeline),
        Route("/baseline11", baseline, methods=["GET", "POST"]),
        Mount(
            "/json",
            routes=[Route("/{count:int}", page)],
            middleware=[Middleware(GZipMiddleware, minimum_size=0, compresslevel=6)],
        ),
        Route("/upload", upload, methods=["POST"]),
    ]
)
