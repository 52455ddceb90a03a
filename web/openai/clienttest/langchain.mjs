// LangChain.js with @langchain/openai, unchanged, against the gateway's /v1, by the
// Responses API. Resolved from the folder in OPENAI_TEST_NODE; `make test-clients`
// runs this.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { OPENAI_TEST_URL: url, OPENAI_TEST_KEY: key, OPENAI_TEST_MODEL: model, OPENAI_TEST_NODE: dir } = process.env;
const resolve = createRequire(pathToFileURL(`${dir}/index.js`)).resolve;
const { ChatOpenAI } = await import(pathToFileURL(resolve("@langchain/openai")));

const chat = new ChatOpenAI({ model, apiKey: key, configuration: { baseURL: `${url}/v1` }, useResponsesApi: true, maxRetries: 0 });
const first = await chat.invoke([{ role: "user", content: "I am Ada." }]);
assert.equal(first.text, "Hello Ada.");
assert.ok(first.usage_metadata.total_tokens > 0);

let text = "";
for await (const piece of await chat.stream([{ role: "user", content: "I am Ada." }, first, { role: "user", content: "Who am I?" }])) text += piece.text;
assert.equal(text, "You are Ada.");

const third = await chat.invoke([{ role: "user", content: "I am Ada." }, first, { role: "user", content: "Who am I?" }, { role: "assistant", content: text }, { role: "user", content: "Sure?" }]);
assert.equal(third.text, "Ada it is.");

await assert.rejects(async () => {
  for await (const _ of await chat.stream("Hello"));
});
console.log("ok");
