package maintenance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
)

// forget erases a user: their messages and the replies in their direct chats and
// of the given runs and asks. Only the key of an update stays, so that a repeat
// is recognised; waiting replies are not sent. Copies of replies to others that
// contain a name or id of the user lose their text. It returns the files of
// messages that have not been answered. Rows that the sweep has read are skipped.
func forget(ctx context.Context, tx *store.Tx, p core.Person, runs, asks []string, s swept) (files []string, err error) {
	f := &forgetting{ctx: ctx, tx: tx, s: s}
	for _, c := range p.Chats {
		f.updates(bodies+ofChat+withBody, emptied+ofChat, s.inbox, c.Bot, c.Chat)
		f.exec(`DELETE FROM outbox WHERE seq > $1 AND bot = $2 AND chat = $3`, s.outbox, c.Bot, c.Chat)
		f.lane(core.LaneOf(core.Address{Bot: c.Bot, Chat: c.Chat}))
	}
	for _, id := range p.Identities {
		for _, bot := range id.Bots {
			f.updates(bodies+ofSender+withBody, emptied+ofSender, s.inbox, bot, id.ID)
		}
		f.mentions(id.ID)
	}
	for _, id := range p.Sessions {
		f.updates(bodies+ofChat+withBody, emptied+ofChat, s.inbox, core.APIBot, id)
		f.lane(core.LaneOf(core.Address{Bot: core.APIBot, Chat: id}))
	}
	for _, run := range runs {
		f.exec(`DELETE FROM outbox WHERE key = $1`, "run:"+run)
	}
	for _, id := range p.Requests {
		f.exec(`UPDATE inbox SET request = '' WHERE seq > $1 AND request = $2`, s.inbox, id)
		f.keys("pair:" + id + ":")
	}
	for _, id := range asks {
		f.keys("ask:" + id)
	}
	for _, name := range p.Names {
		f.mentions(name)
	}
	if f.err != nil {
		return nil, fmt.Errorf("forget messages: %w", f.err)
	}
	return f.files, nil
}

// forgetRuns deletes the replies of runs and of asks from the outbox.
func forgetRuns(ctx context.Context, tx *store.Tx, runs, asks []string) error {
	f := &forgetting{ctx: ctx, tx: tx}
	for _, run := range runs {
		f.exec(`DELETE FROM outbox WHERE key = $1`, "run:"+run)
	}
	for _, id := range asks {
		f.keys("ask:" + id)
	}
	return f.err
}

// forgetLanes deletes the lanes of deleted sessions.
func forgetLanes(ctx context.Context, tx *store.Tx, sessions []string) error {
	f := &forgetting{ctx: ctx, tx: tx}
	for _, id := range sessions {
		f.lane(core.LaneOf(core.Address{Bot: core.APIBot, Chat: id}))
	}
	return f.err
}

type forgetting struct {
	ctx   context.Context
	tx    *store.Tx
	s     swept
	files []string
	err   error
}

func (f *forgetting) exec(query string, args ...any) {
	if f.err == nil {
		_, f.err = f.tx.Exec(f.ctx, query, args...)
	}
}

// emptied is an update that keeps only its key.
const emptied = `UPDATE inbox SET payload = NULL, sender = '', chat = '', lane = '', message_id = '', run = '', request = '', error = '', state = 'refused'`

// bodies selects the stored updates.
const bodies = `SELECT payload FROM inbox`

// Which rows are meant.
const (
	ofChat   = ` WHERE seq > $1 AND bot = $2 AND chat = $3`
	ofSender = ` WHERE seq > $1 AND bot = $2 AND sender = $3`
	withBody = ` AND payload IS NOT NULL`
)

// updates has the rows emptied that find finds.
func (f *forgetting) updates(find, empty string, args ...any) {
	if f.err != nil {
		return
	}
	var rows []string
	if f.err = f.tx.Select(f.ctx, &rows, find, args...); f.err != nil {
		return
	}
	for _, body := range rows {
		var in core.Inbound
		_ = json.NewDecoder(strings.NewReader(body)).Decode(&in) // one that cannot be read names no file
		for _, file := range in.Files {
			if file.Path != "" {
				f.files = append(f.files, file.Path)
			}
		}
	}
	f.exec(empty, args...)
}

func (f *forgetting) lane(key string) {
	f.exec(`DELETE FROM lane WHERE key IN ($1, $2, $3) AND owner = ''`, key, key+core.ControlLane, key+core.ShowsLane)
}

// keys deletes replies by the beginning of their key.
func (f *forgetting) keys(prefix string) {
	f.exec(`DELETE FROM outbox WHERE key >= $1 AND key < $2`, prefix, prefix+"\U0010FFFF")
}

// Replies to others that name a user: what was sent is emptied, and what no one will get
// any more is deleted, as are notices that have the user's id in their key. What is still
// to be sent is not touched: it is someone's answer.
const (
	named     = `replace(body, $2, '') <> body`
	isNotice  = `key >= 'notice:' AND key < 'notice;' AND replace(key, $2, '') <> key`
	unsent    = `state IN ('failed', 'unknown')`
	emptySent = `UPDATE outbox SET body = '{}'`
)

// mentions forgets what was sent to others. Two letters are in too many texts.
func (f *forgetting) mentions(word string) {
	if word, ok := mentioned(word); ok {
		f.exec(`DELETE FROM outbox WHERE seq > $1 AND `+unsent+` AND `+named, f.s.outbox, word)
		f.exec(emptySent+` WHERE seq > $1 AND state = 'sent' AND `+named, f.s.outbox, word)
		f.exec(`DELETE FROM outbox WHERE seq > $1 AND (state = 'sent' OR `+unsent+`) AND `+isNotice, f.s.outbox, ":"+word+":")
	}
}

// mentioned returns a name as a stored body has it. It returns false when the
// name is too short to search for.
func mentioned(word string) (string, bool) {
	quoted, err := json.Marshal(word)
	return strings.Trim(string(quoted), `"`), err == nil && len(word) >= 3
}
