// The official MCP client for Node against a gateway; see TestMCP_TheOfficialNodeClientWorksUnchanged.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const at = createRequire(process.env.MCP_TEST_NODE + "/");
const load = (name) => import(pathToFileURL(at.resolve("@modelcontextprotocol/sdk/" + name)).href);
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { StdioClientTransport } = await load("client/stdio.js");

const transports = {
  http: () => new StreamableHTTPClientTransport(new URL(process.env.MCP_TEST_URL), {
    requestInit: { headers: { Authorization: "Bearer " + process.env.MCP_TEST_KEY } },
  }),
  stdio: () => new StdioClientTransport({ command: process.env.MCP_TEST_PROGRAM, args: ["mcp"], env: process.env, stderr: "inherit" }),
};

for (const [name, open] of Object.entries(transports)) {
  const client = new Client({ name: "node", version: "1" });
  const request = client.request.bind(client); // which gives up after a minute: a busy machine takes longer
  client.request = (what, schema, options) => request(what, schema, { timeout: 600_000, ...options });
  await client.connect(open());
  assert.equal(client.getServerVersion().name, "gatehouse");
  const { tools } = await client.listTools(); // it also reads the output schemas
  assert.ok(tools.find((t) => t.name === "ask_agent" && !t.annotations.readOnlyHint));
  assert.ok(tools.find((t) => t.name === "read_note" && t.annotations.readOnlyHint));
  assert.equal(tools.some((t) => t.name === "pairing_list"), name === "http", name + " is offered admin's tools");

  const note = await client.callTool({ name: "read_note", arguments: { path: "Notes/Tea.md" } });
  assert.match(note.content[0].text, /The kettle is blue/);
  const list = await client.callTool({ name: "sessions_list", arguments: {} }); // held against the schema
  assert.ok(Array.isArray(list.structuredContent.sessions));
  const refused = await client.callTool({ name: "read_note", arguments: { path: "No/such.md" } });
  assert.ok(refused.isError);
  await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }).then((r) => { if (r.isError) throw new Error(r.content[0].text); }));

  const progress = [];
  const answer = await client.callTool({ name: "ask_agent", arguments: { message: "Which colour?" } }, undefined, { onprogress: (p) => progress.push(p.message) });
  assert.equal(answer.structuredContent.response, "It is blue.");
  assert.ok(progress.some((m) => m.startsWith("conversation ")), "progress: " + progress);
  const { resources } = await client.listResources();
  const uri = resources.find((r) => r.uri.endsWith(answer.structuredContent.session_id)).uri;
  assert.match((await client.readResource({ uri })).contents[0].text, /It is blue/);
  assert.ok((await client.listResourceTemplates()).resourceTemplates.length >= 2);
  assert.ok((await client.listPrompts()).prompts.length >= 1);

  const stop = new AbortController();
  const asked = client.callTool({ name: "ask_agent", arguments: { message: "Slowly" } }, undefined, {
    signal: stop.signal, onprogress: (p) => { if (p.message.includes("of the answer")) stop.abort("enough"); },
  });
  await assert.rejects(asked);
  await client.ping(); // the cancellation, sent before, has arrived
  await client.close();
  console.log(name + ": done");
}
