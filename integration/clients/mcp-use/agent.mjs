// An agent of mcp-use with the gateway as its only server: answers one prompt
// and prints the answer.
//
//   node agent.mjs FOLDER-WITH-node_modules MODEL-URL SERVER-AS-JSON PROMPT
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, model, gateway, prompt] = process.argv.slice(2);
const require = createRequire(pathToFileURL(folder + "/agent.js"));
const { MCPAgent, MCPClient } = require("mcp-use");
const { ChatOpenAI } = require("@langchain/openai");

const client = new MCPClient({ mcpServers: { gateway: JSON.parse(gateway) } });
const llm = new ChatOpenAI({ model: "scripted", apiKey: "none", configuration: { baseURL: model + "/v1" } });
const agent = new MCPAgent({ llm, client, maxSteps: 40 });
console.log(await agent.run({ prompt }));
await agent.close();
