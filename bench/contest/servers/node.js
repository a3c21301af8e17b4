// Node's http server without a framework.
const http = require("node:http");
const { gzip } = require("node:zlib");
const { address, page, size, sum } = require("./contract.js");

async function text(request) {
  let body = "";
  for await (const chunk of request) body += chunk;
  return body;
}

function answer(response, body, type = "text/plain") {
  response.writeHead(200, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

function answerJson(request, response, value) {
  const body = JSON.stringify(value);
  if (!/\bgzip\b/.test(request.headers["accept-encoding"])) return answer(response, body, "application/json");
  gzip(body, (_error, packed) => {
    const head = { "Content-Type": "application/json", "Content-Encoding": "gzip", "Content-Length": packed.length };
    response.writeHead(200, head);
    response.end(packed);
  });
}

const server = http.createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  const [, route, argument] = pathname.split("/");
  switch (route) {
    case "":
      return answer(response, "");
    case "user":
      return answer(response, argument ?? "");
    case "pipeline":
      return answer(response, "ok");
    case "baseline11":
      return answer(response, sum(Object.fromEntries(searchParams), await text(request)));
    case "json":
      return answerJson(request, response, page(Number(argument), Number(searchParams.get("m"))));
    case "upload":
      return answer(response, await size(request));
    default:
      response.writeHead(404).end();
  }
});
server.listen(address);
