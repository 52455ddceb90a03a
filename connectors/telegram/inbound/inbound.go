// Package inbound decodes Telegram's updates. Each update gives exactly one
// core.Inbound, and one that cannot be decoded is marked Malformed, so that the
// cursor always moves on.
//
// An update's id is "<numeric bot id>:<update_id>". A chat is "<chat id>", with a
// forum topic "<chat id>/<thread id>"; its place is the chat id in groups.
package inbound

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"gatehouse/core"
)

// Platform is the platform's name in every address, row and label.
const Platform = "telegram"

// Options configure a Decoder. Bot and ID are required.
type Options struct {
	Bot   string       // configured name
	ID    int64        // the bot's number
	Hears bool         // voice messages and video notes are transcribed; without it a voice message is marked Unsupported
	Log   *slog.Logger // discarded
}

// A Decoder decodes the updates of one bot. It may be used by several goroutines
// at once.
type Decoder struct {
	o        Options
	key      string // the bot's number as text
	username atomic.Pointer[string]
	read     func(u *update, raw json.RawMessage, now time.Time) core.Inbound // translate
}

// New returns a Decoder that does not know the bot's username yet, so that it
// recognizes no mention by name.
func New(o Options) *Decoder {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Decoder{o: o, key: strconv.FormatInt(o.ID, 10)}
	d.read = d.translate
	return d
}

// SetUsername sets the name by which messages mention the bot, without "@".
func (d *Decoder) SetUsername(name string) { d.username.Store(&name) }

// Username returns the bot's username, and false before SetUsername.
func (d *Decoder) Username() (string, bool) {
	if name := d.username.Load(); name != nil {
		return *name, true
	}
	return "", false
}
