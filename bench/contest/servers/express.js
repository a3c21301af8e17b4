// Express.
const express = require("express");
const { address, page, size, sum } = require("./contract.js");

const app = express();
const text = express.text({ type: () => true });
app.disable("x-powered-by");

app.get("/", (_request, response) => response.end());
app.get("/user/:id", (request, response) => response.type("text").send(request.params.id));
app.post("/user", (_request, response) => response.end());
app.get("/pipeline", (_request, response) => response.type("text").send("ok"));
app.get("/baseline11", (request, response) => response.type("text").send(sum(request.query)));
app.post("/baseline11", text, (request, response) => response.type("text").send(sum(request.query, request.body)));
app.get("/json/:count", require("compression")({ threshold: 0 }), (request, response) =>
  response.json(page(Number(request.params.count), Number(request.query.m))),
);
app.post("/upload", async (request, response) => response.type("text").send(await size(request)));
app.listen(address.port, address.host, address.backlog);
