// A client of the gateway, with the MCP SDK for TypeScript: searches for a tool
// that is not listed, calls it, and prints what it got as JSON. It waits for the
// tool to be listed if mcp_tool_call is not.
//
//   node sdkclient.mjs FOLDER-WITH-node_modules stdio COMMAND ARGUMENT…
//   node sdkclient.mjs FOLDER-WITH-node_modules http URL TOKEN
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, kind, target, ...rest] = process.argv.slice(2);
const { resolve } = createRequire(pathToFileURL(folder + "/client.js"));
const load = (name) => import(pathToFileURL(resolve("@modelcontextprotocol/sdk/" + name)));
const { Client } = await load("client/index.js");
const { ToolListChangedNotificationSchema } = await load("types.js");

const client = new Client({ name: "typescript", version: "1" });
const changed = new Promise((told) => client.setNotificationHandler(ToolListChangedNotificationSchema, told));
let transport;
if (kind === "stdio") {
  const { StdioClientTransport } = await load("client/stdio.js");
  transport = new StdioClientTransport({ command: target, args: rest, stderr: "inherit" });
} else {
  const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
  transport = new StreamableHTTPClientTransport(new URL(target), {
    requestInit: { headers: { Authorization: "Bearer " + rest[0] } },
  });
}
await client.connect(transport);
const list = async () => (await client.listTools()).tools.map((t) => t.name);
const call = async (name, args) => (await client.callTool({ name, arguments: args })).content[0].text;

const got = { instructions: client.getInstructions(), tools: await list() };
got.items = (await client.callTool({ name: "mcp_office__boxes" })).structuredContent.items.length; // which the SDK checks
got.found = await call("mcp_tool_search", { query: "weigh a parcel" });
const [name] = got.found.match(/mcp_\w+__weigh_parcel/);
if (got.tools.includes("mcp_tool_call")) {
  got.called = await call("mcp_tool_call", { name, arguments: { parcel: "p1" } });
} else {
  await changed;
  got.after = await list();
  got.called = await call(name, { parcel: "p1" });
}
if (kind === "http") await transport.terminateSession();
await client.close();
console.log(JSON.stringify(got));
