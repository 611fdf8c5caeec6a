// A server with the MCP SDK for TypeScript.
//
//   node server.mjs FOLDER-WITH-node_modules v1|v2 stdio|http|stateless tools|quiet|prompts|resources
//
// It offers what servers/gosdk does. Over HTTP, it is on a free port of 127.0.0.1. It
// prints its URL, and ends with its standard input. With v2, http is createMcpHandler.
import { randomUUID } from "node:crypto";
import http from "node:http";
import { createRequire } from "node:module";
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const [folder, sdk, transport, offers] = process.argv.slice(2);
const { resolve } = createRequire(pathToFileURL(folder + "/server.js"));
const load = (name) => import(pathToFileURL(resolve(name)));
const { z } = await load("zod");
const { McpServer } = await load(sdk === "v1" ? "@modelcontextprotocol/sdk/server/mcp.js" : "@modelcontextprotocol/server");

let added = false; // for servers of one request
let changed = (server, name) => register(server, name);

function register(server, name) {
  const used = () => {
    if (name !== "add") return;
    added = true;
    changed(server, "added");
  };
  if (offers === "prompts") {
    server.registerPrompt(name, { description: "Greets." }, async () => {
      used();
      return { messages: [{ role: "user", content: { type: "text", text: "Hi" } }] };
    });
  } else if (offers === "resources") {
    server.registerResource(name, "greeting://" + name, {}, async (uri) => {
      used();
      return { contents: [{ uri: uri.href, text: "Hi" }] };
    });
  } else {
    server.registerTool(name, { description: "Greets somebody.", inputSchema: z.object({ name: z.string().optional() }) }, async (person) => {
      used();
      return { content: [{ type: "text", text: "Hi " + (person.name ?? "") }] };
    });
  }
}

function newServer() {
  const server = new McpServer({ name: "greeter", version: "1" });
  if (offers === "tools" || offers === "quiet") register(server, "greet");
  register(server, "add");
  if (added) register(server, "added");
  if (offers === "quiet") {
    server.server.registerCapabilities({ tools: { listChanged: false } });
    server.sendToolListChanged = () => {};
  }
  return server;
}

function listen(handle) {
  const web = http.createServer(handle);
  web.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${web.address().port}/mcp`));
  process.stdin.resume().on("end", () => process.exit());
}

if (sdk === "v1" && transport === "stdio") {
  const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/server/stdio.js");
  await newServer().connect(new StdioServerTransport());
} else if (sdk === "v1") {
  const { StreamableHTTPServerTransport } = await load("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const sessions = new Map();
  if (transport === "stateless") changed = () => {};
  listen(async (request, response) => {
    let session = sessions.get(request.headers["mcp-session-id"]);
    if (!session) {
      session = new StreamableHTTPServerTransport({
        sessionIdGenerator: transport === "stateless" ? undefined : randomUUID,
        onsessioninitialized: (id) => sessions.set(id, session),
      });
      await newServer().connect(session);
    }
    await session.handleRequest(request, response);
  });
} else if (transport === "stdio") {
  const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
  serveStdio(newServer);
} else {
  const { createMcpHandler } = await load("@modelcontextprotocol/server");
  const handler = createMcpHandler(newServer);
  changed = () => {
    if (offers !== "quiet") handler.notify[offers + "Changed"]();
  };
  listen(async (request, response) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const answer = await handler.fetch(new Request("http://127.0.0.1" + request.url, {
      method: request.method, headers: request.headers, signal: gone.signal,
      body: request.method === "POST" ? await buffer(request) : undefined,
    }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    try {
      for await (const chunk of answer.body ?? []) response.write(chunk);
    } catch {} // the client is gone
    response.end();
  });
}
