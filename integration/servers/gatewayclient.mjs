// A client of the gateway, with the MCP SDK for TypeScript: lists, searches,
// reads and calls, and prints what it got as JSON.
//
//   node gatewayclient.mjs FOLDER-WITH-node_modules stdio COMMAND ARGUMENT…
//   node gatewayclient.mjs FOLDER-WITH-node_modules http URL TOKEN
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, kind, target, ...rest] = process.argv.slice(2);
const { resolve } = createRequire(pathToFileURL(folder + "/client.js"));
const load = (name) => import(pathToFileURL(resolve("@modelcontextprotocol/sdk/client/" + name)));
const { Client } = await load("index.js");

const client = new Client({ name: "typescript", version: "1" });
let transport;
if (kind === "stdio") {
  const { StdioClientTransport } = await load("stdio.js");
  transport = new StdioClientTransport({ command: target, args: rest, stderr: "inherit" });
} else {
  const { StreamableHTTPClientTransport } = await load("streamableHttp.js");
  transport = new StreamableHTTPClientTransport(new URL(target), {
    requestInit: { headers: { Authorization: "Bearer " + rest[0] } },
  });
}
const errors = [];
const stop = new AbortController(); // of the call that is cancelled
client.onerror = (error) => {
  // Progress may be on its way when its call is cancelled. No other call reports progress after that.
  if (!stop.signal.aborted || !String(error).includes("progress notification for an unknown token")) errors.push(String(error));
};
await client.connect(transport);

// The SDK puts off looking at a notification, but not at an answer: of progress
// that is read together with the answer behind it, it loses the last
// (https://github.com/modelcontextprotocol/typescript-sdk/issues/2580). So each
// message gets a turn of its own, in the order in which they came.
const deliver = transport.onmessage;
let turn = Promise.resolve();
transport.onmessage = (message, extra) => {
  turn = turn.then(() => {
    deliver(message, extra);
    return new Promise(setImmediate);
  });
};

const text = (result) => result.content.map((c) => c.text).join("\n");
const bridged = (name, args, ...more) =>
  client.callTool({ name: "mcp_tool_call", arguments: { name, arguments: args } }, ...more);
const got = { instructions: client.getInstructions() };

got.tools = (await client.listTools()).tools.map((t) => t.name);
got.found = text(await client.callTool({ name: "mcp_tool_search", arguments: { query: "read the whole knowledge graph" } }));
got.described = text(await client.callTool({ name: "mcp_tool_describe", arguments: { names: ["mcp_memory__create_entities"] } }));
await bridged("mcp_memory__create_entities", {
  entities: [{ name: "Gopher", entityType: "animal", observations: ["digs"] }],
});
got.graph = (await bridged("mcp_memory__read_graph", {})).structuredContent;
got.sum = text(await client.callTool({ name: "mcp_everything__get-sum", arguments: { a: 2, b: 40 } }));
got.image = (await bridged("mcp_everything__get-tiny-image", {})).content.map((c) => c.type);
got.links = (await bridged("mcp_everything__get-resource-links", { count: 2 })).content.map((c) => c.type);
got.structured = (await bridged("mcp_everything__get-structured-content", { location: "Chicago" })).structuredContent;
got.directories = text(await client.callTool({ name: "mcp_filesystem__list_allowed_directories", arguments: {} }));
got.grafana = text(await client.callTool({ name: "mcp_grafana__list_datasources", arguments: {} }));

got.progress = [];
await bridged("mcp_everything__trigger-long-running-operation", { duration: 0.3, steps: 3 }, undefined, {
  onprogress: (p) => got.progress.push(p.progress),
});

const begun = Date.now();
try {
  await bridged("mcp_everything__trigger-long-running-operation", { duration: 600, steps: 6000 }, undefined, {
    signal: stop.signal,
    onprogress: () => stop.abort("enough"),
  });
} catch (error) {
  got.cancelled = String(error);
}
got.took = Date.now() - begun;
got.after = text(await bridged("mcp_everything__echo", { message: "still here" }));
got.refused = (await bridged("mcp_everything__get-sum", { a: "two" })).isError;
if (kind === "http") await transport.terminateSession();
await client.close();
got.errors = errors;
console.log(JSON.stringify(got));
