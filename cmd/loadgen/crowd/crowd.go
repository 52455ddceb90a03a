// Package crowd is users who write to one bot on a simulated platform, the
// same way whichever platform it is: for the load tool, and for the tests that
// kill the gateway.
package crowd

import (
	"net/http"
	"strings"
	"time"
)

// A Message is one message in a chat as its users see it.
type Message struct {
	Chat    string
	ID      string
	Text    string // as it is now
	Bot     bool   // of the bot, not of a user
	Edited  bool   // the message was there before
	Deleted bool   // it is gone; Chat and ID alone are set
	Silent  bool   // on Discord: it notified no one when it came, as a preview
	At      time.Time
}

// A Chat is where users write and the bot answers.
type Chat struct {
	ID string
	// Place is the guild channel it is; "" for a direct conversation. The bot
	// answers there once its owner has enabled it.
	Place string
	say   []func(text string) (Message, error) // its users
}

// Say sends text as the chat's n-th user, modulo their number. In a channel it
// mentions the bot.
func (c Chat) Say(n int, text string) (Message, error) { return c.say[n%len(c.say)](text) }

// A simulator is what the platforms' simulators have in common here.
type simulator interface {
	// Watch calls f for every message that becomes visible or changes, at once
	// and in order; f must return quickly and must not call the simulator.
	Watch(f func(Message)) (stop func())
	// Drafts calls f for what the bot shows of an unfinished message, where that is
	// no message; as Watch does.
	Drafts(f func(chat string, at time.Time)) (stop func())
	// History is a chat's messages, oldest first.
	History(chat string) []Message
	// Online reports whether the bot receives now.
	Online() bool
	// Seen is when the bot first turned to the platform after a moment; zero when
	// it has not.
	Seen(after time.Time) time.Time
}

// A Platform is one simulated platform with its users and one bot.
type Platform struct {
	simulator
	Name    string // and the configured name of the bot
	URL     string
	Token   string
	Chats   []Chat
	Handler http.Handler            // the platform itself, for use behind a proxy
	Methods []string                // the methods worth counting
	Count   func(method string) int // how often one was called
	Close   func() error            // ends the simulator
}

// Settings returns what a gateway needs to find the platform at url, by name and
// without the program's prefix; everyone may write to the bot.
func (p *Platform) Settings(url string) map[string]string {
	prefix := strings.ToUpper(p.Name) + "_"
	return map[string]string{prefix + "TOKEN": p.Token, prefix + "API_URL": url, prefix + "DM_POLICY": "open"}
}
