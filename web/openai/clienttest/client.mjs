// The official Node client of OpenAI's API, unchanged, against the gateway's
// /v1: the same steps in the same order as client_test.go. The client is
// resolved from the folder in OPENAI_TEST_NODE; `make test-clients` runs this.
import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { OPENAI_TEST_URL: url, OPENAI_TEST_KEY: key, OPENAI_TEST_MODEL: model, OPENAI_TEST_SAYS: says, OPENAI_TEST_NODE: dir } = process.env;
const resolve = createRequire(pathToFileURL(`${dir}/index.js`)).resolve;
const { default: module } = await import(pathToFileURL(resolve("openai")));
const OpenAI = module.OpenAI ?? module;

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key });
const messages = [{ role: "user", content: "Hello" }];
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

// failure is the API's error of that class and status.
async function failure(promise, kind, status) {
  try {
    await promise;
  } catch (e) {
    assert.ok(e instanceof kind, `${e.name}: ${e.message}, want ${kind.name}`);
    assert.equal(e.status, status);
    return e;
  }
  assert.fail(`no error, want ${status}`);
}

const steps = {
  async models() {
    const ids = [];
    for await (const m of client.models.list()) ids.push(m.id);
    assert.ok(ids.includes(model) && ids.includes("vault-agent"), ids.join());
    assert.equal((await client.models.retrieve(model)).id, model);
  },
  async whole() {
    const c = await client.chat.completions.create({ model, messages });
    assert.equal(c.choices[0].message.content, says);
    assert.equal(c.choices[0].finish_reason, "stop");
    assert.ok(c.usage.total_tokens > 0 && c.usage.total_tokens === c.usage.prompt_tokens + c.usage.completion_tokens);
  },
  async stream() {
    const s = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
    const c = await s.finalChatCompletion();
    assert.equal(c.choices[0].message.content, says);
    assert.equal(c.choices[0].finish_reason, "stop");
    assert.ok(c.usage.total_tokens > 0);
  },
  async conversation() {
    const c = await client.chat.completions.create({
      model, temperature: 0, max_completion_tokens: 50, stop: ["END"],
      messages: [
        { role: "developer", content: "Be brief." }, { role: "user", content: "I am Ada." }, { role: "assistant", content: "Hello Ada." },
        { role: "user", content: [{ type: "text", text: "What is this?" }, { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } }] },
      ],
    });
    assert.equal(c.choices[0].message.content, says);
  },
  async refusals() {
    const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: "gh_wrong" });
    assert.equal((await failure(stranger.models.list(), OpenAI.AuthenticationError, 401)).code, "invalid_api_key");
    assert.equal((await failure(client.chat.completions.create({ model: "gpt-none", messages }), OpenAI.NotFoundError, 404)).code, "model_not_found");
    const tools = [{ type: "function", function: { name: "weather" } }];
    assert.equal((await failure(client.chat.completions.create({ model, messages, tools }), OpenAI.BadRequestError, 400)).param, "tools");
  },
  async limited() {
    const e = await failure(client.chat.completions.create({ model, messages }, { maxRetries: 0 }), OpenAI.RateLimitError, 429);
    assert.ok(e.headers.get("retry-after"));
  },
  async final() {
    await failure(client.chat.completions.create({ model, messages }), OpenAI.InternalServerError, 502);
  },
  async broken() {
    let text = "";
    await assert.rejects(async () => {
      for await (const c of await client.chat.completions.create({ model, messages, stream: true })) text += c.choices[0]?.delta?.content ?? "";
    }, OpenAI.APIError);
    assert.notEqual(text, "");
  },
  async responses() {
    const first = await client.responses.create({ model, input: "Hello", instructions: "Be brief.", metadata: { from: "node" } });
    assert.equal(first.output_text, says);
    assert.equal(first.status, "completed");
    assert.ok(first.usage.total_tokens > 0 && first.metadata.from === "node");
    const runner = client.responses.stream({ model, input: [{ role: "user", content: [{ type: "input_text", text: "And?" }, { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "low" }] }], previous_response_id: first.id });
    const types = [];
    runner.on("event", (e) => types.push(e.type));
    const last = await runner.finalResponse();
    assert.equal(last.output_text, says);
    assert.equal(last.previous_response_id, first.id);
    assert.ok(types.includes("response.output_text.delta") && types.at(-1) === "response.completed", types.join());
    const items = [];
    for await (const item of client.responses.inputItems.list(last.id, { order: "asc", limit: 1 })) items.push(item);
    assert.ok(items.length === 1 && items[0].content[0].text === "And?", JSON.stringify(items));
    assert.equal((await client.responses.retrieve(first.id)).output_text, says);
    await client.responses.delete(last.id);
    await failure(client.responses.retrieve(last.id), OpenAI.NotFoundError, 404);
    assert.equal((await failure(client.responses.create({ model, input: "x", tools: [{ type: "web_search" }] }), OpenAI.BadRequestError, 400)).param, "tools");
  },
  async background() {
    let r = await client.responses.create({ model, input: "Hello", background: true });
    while (r.status === "queued" || r.status === "in_progress") r = await client.responses.retrieve(r.id);
    assert.equal(r.output_text, says);
    assert.equal((await client.responses.cancel(r.id)).status, "completed");
    let text = "";
    for await (const e of await client.responses.retrieve(r.id, { stream: true, starting_after: 2 })) if (e.type === "response.output_text.delta") text += e.delta;
    assert.equal(text, says);
  },
  async repeated() {
    const once = { headers: { "Idempotency-Key": "node-1" } };
    const first = await client.responses.create({ model, input: "Once" }, once);
    const again = await client.responses.create({ model, input: "Once" }, once);
    assert.ok(first.output_text === says && again.id === first.id && again.output_text === says, JSON.stringify(again));
    await failure(client.responses.create({ model, input: "Other" }, once), OpenAI.ConflictError, 409);
  },
  async transcribed() {
    const t = await client.audio.transcriptions.create({ model: "whisper-1", file: createReadStream(process.env.OPENAI_TEST_SPEECH) });
    assert.equal(t.text, "Where is the shed? I lost the key.");
  },
  async brokenResponse() {
    let text = "";
    await assert.rejects(async () => {
      for await (const e of await client.responses.create({ model, input: "Hello", stream: true })) if (e.type === "response.output_text.delta") text += e.delta;
    }, OpenAI.APIError);
    assert.notEqual(text, "");
  },
  async left() {
    const s = await client.chat.completions.create({ model, messages, stream: true });
    for await (const c of s) if (c.choices[0]?.delta?.content) break; // ends the connection
  },
};

for (const [name, step] of Object.entries(steps)) {
  await step();
  console.log(`ok ${name}`);
}
