// Package responses is OpenAI's Responses API: a response is one run of a session,
// whole, streamed or in the background, which can be read again, gone on from,
// cancelled and deleted (https://platform.openai.com/docs/api-reference/responses).
//
// A response with previous_response_id is the next turn of the same session where it
// follows that session's last turn; else a session begins with the earlier messages.
// One that is not stored has a session of its own, which is deleted after its run.
package responses
