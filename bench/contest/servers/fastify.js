// Fastify.
const fastify = require("fastify");
const { address, page, size, sum } = require("./contract.js");

const app = fastify({ bodyLimit: 32 * 1024 * 1024 });
app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
app.register(require("@fastify/compress"), { global: false, encodings: ["gzip"] });

app.get("/", async () => "");
app.get("/user/:id", async (request) => request.params.id);
app.post("/user", async () => "");
app.get("/pipeline", async () => "ok");
app.get("/baseline11", async (request) => sum(request.query));
app.post("/baseline11", async (request) => sum(request.query, request.body));
app.register(async (scope) => {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, body, done) => done(null, body));
  scope.post("/upload", async (request) => size(request.body));
});
// After the plugin for compression, because a route must be added after the plugins that it uses.
app.after(() => {
  app.get("/json/:count", { compress: { threshold: 0 } }, async (request) =>
    page(Number(request.params.count), Number(request.query.m)),
  );
});
app.listen(address);
