// Shared by the servers on Node: the port, the data set, and what the answers contain.
const { readFileSync } = require("node:fs");

const [port, dataset] = process.argv.slice(2);
const items = JSON.parse(readFileSync(dataset));

/** Where a server listens. */
exports.address = { host: "127.0.0.1", port: Number(port), backlog: 4096 };

exports.sum = (query, body) => String(Number(query.a) + Number(query.b) + Number(body || 0));

exports.page = (count, factor) => {
  const found = items.slice(0, count).map((item) => ({ ...item, total: item.price * item.quantity * factor }));
  return { items: found, count: found.length };
};

/** Reads a body without storing it, and returns its size in bytes. */
exports.size = async (body) => {
  let bytes = 0;
  for await (const chunk of body) bytes += chunk.length;
  return String(bytes);
};
