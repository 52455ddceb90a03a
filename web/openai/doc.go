// Package openai is the door for programs that speak OpenAI's API: the list of
// models and chat completions, streamed or whole.
//
// Each agent of the vault and each configured model is a model here. A request
// keeps nothing between calls: its messages are the conversation, and it is
// answered by a run of its own session, with the tools that its key's trust is
// offered. No approval is asked for in such a run, and it is stopped when its
// client goes away. What a request asks for and cannot have is refused with
// the field's name, in OpenAI's form of an error
// (https://platform.openai.com/docs/api-reference/chat,
// https://platform.openai.com/docs/guides/error-codes).
package openai
