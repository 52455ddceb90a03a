package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Forget takes a person out of the queue: what they wrote and what was said to
// them, in their direct chats and by the given runs and asks. Of updates only
// the key stays, so that a repeat is still known; replies on their way are not
// sent. Copies of replies that were sent to others and hold one of the person's
// names or ids lose their text. The files are what came with messages that
// have not been answered yet.
func (q *Queue) Forget(ctx context.Context, tx *store.Tx, p core.Person, runs, asks []string) (files []string, err error) {
	f := &forgetting{q: q, ctx: ctx, tx: tx}
	for _, c := range p.Chats {
		f.updates(inboxColumns+` WHERE payload IS NOT NULL AND bot = $1 AND chat = $2`, emptied+` WHERE bot = $1 AND chat = $2`, c.Bot, c.Chat)
		f.exec(`DELETE FROM outbox WHERE bot = $1 AND chat = $2`, c.Bot, c.Chat)
		f.lane(c.Bot + "|" + c.Chat)
	}
	for _, id := range p.Identities {
		for _, bot := range id.Bots {
			f.updates(inboxColumns+` WHERE payload IS NOT NULL AND bot = $1 AND sender = $2`, emptied+` WHERE bot = $1 AND sender = $2`, bot, id.ID)
		}
		f.mentions(id.ID)
	}
	for _, id := range p.Sessions {
		f.updates(inboxColumns+` WHERE payload IS NOT NULL AND bot = $1 AND chat = $2`, emptied+` WHERE bot = $1 AND chat = $2`, core.APIBot, id)
		f.lane("session:" + id)
	}
	for _, run := range runs {
		f.exec(`DELETE FROM outbox WHERE key = $1`, "run:"+run)
	}
	for _, id := range p.Requests {
		f.exec(`UPDATE inbox SET request = '' WHERE request = $1`, id)
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

type forgetting struct {
	q     *Queue
	ctx   context.Context
	tx    *store.Tx
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

// updates has the rows emptied that find finds.
func (f *forgetting) updates(find, empty string, args ...any) {
	if f.err != nil {
		return
	}
	var rows []inboxRow
	if f.err = f.tx.Select(f.ctx, &rows, find, args...); f.err != nil {
		return
	}
	for _, r := range rows {
		in, _ := r.inbound() // one that cannot be read names no file
		for _, file := range in.Files {
			if file.Path != "" {
				f.files = append(f.files, file.Path)
			}
		}
	}
	f.exec(empty, args...)
}

func (f *forgetting) lane(key string) {
	f.exec(`DELETE FROM lane WHERE (key = $1 OR key = $2) AND owner = ''`, key, key+"#control")
}

// keys deletes replies by the beginning of their key.
func (f *forgetting) keys(prefix string) {
	f.exec(`DELETE FROM outbox WHERE key >= $1 AND key < $2`, prefix, prefix+"\U0010FFFF")
}

// mentions empties what was sent to others. Two letters are in too many texts.
func (f *forgetting) mentions(word string) {
	if len(word) < 3 {
		return
	}
	quoted, err := json.Marshal(word) // as it stands in a body
	if err == nil {
		word = strings.Trim(string(quoted), `"`)
		f.exec(`UPDATE outbox SET body = '{}' WHERE state = 'sent' AND replace(body, $1, '') <> body`, word)
	}
}
