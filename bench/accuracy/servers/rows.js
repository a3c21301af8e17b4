// Node's http server: 400 rows as JSON, made for every request.
const http = require("node:http");

const [port] = process.argv.slice(2).map(Number);

function rows() {
  const found = [];
  for (let id = 0; id < 400; id++) {
    const stock = { here: id % 7, there: id % 11 };
    found.push({ id, name: `item ${id}`, price: id * 1.25, tags: ["new", "sale"], stock });
  }
  return found;
}

const server = http.createServer((_request, response) => {
  const body = Buffer.from(JSON.stringify(rows()));
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.length });
  response.end(body);
});
server.keepAliveTimeout = 120_000;
server.listen({ port, host: "127.0.0.1", backlog: 4096 });
