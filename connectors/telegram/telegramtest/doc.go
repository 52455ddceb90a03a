// Package telegramtest is a strict simulator of the Telegram Bot API: an HTTP
// server on loopback that speaks the real wire protocol to a bot, and to the
// test, the load tool or the demo a Go and an HTTP interface for playing the
// users on the other side.
//
// It knows nothing of the gateway (only core and what simulators share, package
// simulator), so that it can't share a mistake with it. Where it cites a rule, the words in brackets name the
// source:
//
//   - [api] is https://core.telegram.org/bots/api
//   - [faq] is https://core.telegram.org/bots/faq
//   - [features] is https://core.telegram.org/bots/features
//   - [server] is the platform's own Bot API server, github.com/tdlib/telegram-bot-api
//     (Client.cpp unless stated otherwise), the source of error texts
//   - [td] is the library below it, github.com/tdlib/td
//
// Strict means: where documentation and practice differ, the simulator takes
// the side that hurts a careless bot more, and the comment reports it.
//
// # Files
//
// server.go and answer.go carry HTTP, params.go the four ways of passing
// parameters, updates.go and poll.go the update queue, send.go, edit.go and
// methods.go the other methods, text.go, url.go and markup.go validation,
// flood.go pacing, faults.go the words of faults, world.go, people.go and
// groups.go the users, view.go and watch.go what they see, journal.go the
// request log, state.go what survives a restart, control.go and events.go the
// HTTP interface under /control/.
//
// The package is larger than the house allows one package to be because it is
// a platform, not a part: splitting it would export its insides.
package telegramtest
