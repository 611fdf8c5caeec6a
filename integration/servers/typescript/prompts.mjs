// A server with a prompt and nothing else, with the MCP SDK for TypeScript, on a free port
// of 127.0.0.1. It prints its address, and ends with its standard input.
//
//   node prompts.mjs FOLDER-WITH-node_modules
import http from "node:http";
import { createRequire } from "node:module";
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const { resolve } = createRequire(pathToFileURL(process.argv[2] + "/server.js"));
const { createMcpHandler, McpServer } = await import(pathToFileURL(resolve("@modelcontextprotocol/server")));

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "prompts", version: "1" });
  server.registerPrompt("greet", { description: "Greets somebody." }, async () => ({
    messages: [{ role: "user", content: { type: "text", text: "Say hi" } }],
  }));
  return server;
});

const web = http.createServer(async (request, response) => {
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
web.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${web.address().port}`));
process.stdin.resume().on("end", () => process.exit());
