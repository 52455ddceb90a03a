// The Vercel AI SDK with @ai-sdk/openai, unchanged, against the gateway's /v1: its
// default model is of the Responses API. Resolved from the folder in
// OPENAI_TEST_NODE; `make test-clients` runs this.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { OPENAI_TEST_URL: url, OPENAI_TEST_KEY: key, OPENAI_TEST_MODEL: name, OPENAI_TEST_NODE: dir } = process.env;
const resolve = createRequire(pathToFileURL(`${dir}/index.js`)).resolve;
const { generateText, streamText } = await import(pathToFileURL(resolve("ai")));
const { createOpenAI } = await import(pathToFileURL(resolve("@ai-sdk/openai")));

const model = createOpenAI({ baseURL: `${url}/v1`, apiKey: key })(name);
const first = await generateText({ model, messages: [{ role: "user", content: "I am Ada." }] });
assert.equal(first.text, "Hello Ada.");
assert.equal(first.finishReason, "stop");
assert.ok(first.usage.inputTokens > 0 && first.usage.outputTokens > 0);

// The SDK refers to the stored answer by its id.
const messages = [{ role: "user", content: "I am Ada." }, ...first.response.messages, { role: "user", content: "Who am I?" }];
const second = streamText({ model, messages });
let text = "";
for await (const piece of second.textStream) text += piece;
assert.equal(text, "You are Ada.");
assert.equal(await second.finishReason, "stop");

const previousResponseId = (await second.providerMetadata).openai.responseId;
const third = await generateText({ model, prompt: "Sure?", providerOptions: { openai: { previousResponseId } } });
assert.equal(third.text, "Ada it is.");

const errors = [];
const broken = streamText({ model, prompt: "Hello", maxRetries: 0, onError: ({ error }) => errors.push(error) });
text = "";
for await (const part of broken.fullStream) if (part.type === "text-delta") text += part.text;
assert.ok(text === "Half of " && errors.length > 0, `${text}, ${errors.length} errors`);
console.log("ok");
