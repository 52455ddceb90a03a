// Package discordtest is a strict simulator of Discord: an HTTP and websocket
// server on loopback that speaks the real wire protocol to a bot, and to the
// test, the load tool or the demo a Go and an HTTP interface for playing the
// users on the other side.
//
// It knows nothing of the gateway program (only core and what simulators share,
// package simulator), so that it can't share a mistake with it. Where it cites a rule, the words in brackets name the page
// of https://docs.discord.com/developers (github.com/discord/discord-api-docs):
//
//   - [gateway] is events/gateway, [events] is events/gateway-events
//   - [codes] is topics/opcodes-and-status-codes
//   - [limits] is topics/rate-limits, [threads] is topics/threads
//   - [reference] is reference, [message] is resources/message, [channel] is
//     resources/channel, [user] is resources/user
//   - [interactions] is interactions/receiving-and-responding, [commands] is
//     interactions/application-commands, [components] is components/reference
//   - [docs#N] is issue or pull request N of discord/discord-api-docs
//   - [practice] is what libraries' issue trackers quote of the platform's
//     answers where the documentation is silent
//
// Strict means: where documentation and practice differ or are silent, the
// simulator takes the side that hurts a careless bot more, and the comment
// reports it; "ours" marks a figure or a text that has no source.
//
// Not simulated: voice, stickers, polls, roles other than a bot's permissions,
// forwarded messages, Components V2, what else than text a dialog may ask for, ETF and transport compression (both are
// refused aloud), verification of embeds beyond their number.
//
// # Files
//
// server.go and route.go carry HTTP, answer.go and form.go the platform's
// errors, limits.go rate limits, messages.go, write.go, mentions.go and
// components.go messages, methods.go, threads.go and commands.go the other methods,
// interactions.go, modals.go and webhooks.go interactions, gateway.go, conn.go, session.go
// and dispatch.go the websocket, disturb.go and faults.go what goes wrong, world.go,
// guilds.go and people.go the users, view.go and watch.go what they see,
// journal.go the logs, state.go what survives a restart, control.go and
// events.go the HTTP interface under /control/.
//
// The package is larger than the house allows one package to be because it is
// a platform, not a part: splitting it would export its insides.
package discordtest
