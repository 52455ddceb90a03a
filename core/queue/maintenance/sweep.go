package maintenance

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Bounds of a sweep, in rows.
const (
	sweepPage = 2000 // read by one statement, concurrently with the writer
	sweepStep = 200  // changed by one transaction
)

// swept is the position up to which a sweep has read the tables.
type swept struct{ inbox, outbox int64 }

// sweepTables erases the present messages of a user as forget does, in short
// transactions that let other work in between; it reads large tables
// concurrently with the writer. No new turn of the user may start. Each
// transaction calls note with the files of messages that were not answered;
// the queue has no record of them afterwards.
func sweepTables(ctx context.Context, db *store.DB, p core.Person, note func(tx *store.Tx, files []string) error) (s swept, err error) {
	w := &sweep{db: db, ctx: ctx, note: note, chats: map[[2]string]bool{}, senders: map[[2]string]bool{}, requests: map[string]bool{}}
	for _, c := range p.Chats {
		w.chats[[2]string{c.Bot, c.Chat}] = true
	}
	words := p.Names
	for _, id := range p.Identities {
		for _, bot := range id.Bots {
			w.senders[[2]string{bot, id.ID}] = true
		}
		words = append(words[:len(words):len(words)], id.ID)
	}
	for _, id := range p.Requests {
		w.requests[id] = true
	}
	if s.outbox, err = w.outbox(words); err == nil {
		w.sessions(p.Sessions)
		s.inbox, err = w.inbox()
	}
	if err != nil {
		return swept{}, fmt.Errorf("forget messages: %w", err)
	}
	return s, nil
}

// A sweep goes through the tables for one user.
type sweep struct {
	db       *store.DB
	ctx      context.Context
	note     func(*store.Tx, []string) error
	chats    map[[2]string]bool // bot, chat; bounded by the chats of the user
	senders  map[[2]string]bool // bot, sender
	requests map[string]bool
}

func (w *sweep) sessions(ids []string) {
	for _, id := range ids {
		w.chats[[2]string{core.APIBot, id}] = true
	}
}

// inbox reads up to the row that is the last one when it ends.
func (w *sweep) inbox() (last int64, err error) {
	for {
		var rows []struct {
			Seq     int64  `db:"seq"`
			Bot     string `db:"bot"`
			Chat    string `db:"chat"`
			Sender  string `db:"sender"`
			Request string `db:"request"`
		}
		err := w.db.Select(w.ctx, &rows, `SELECT seq, bot, chat, sender, request FROM inbox WHERE seq > $1 ORDER BY seq LIMIT $2`, last, sweepPage)
		if err != nil {
			return last, err
		}
		var theirs, asked []int64
		for _, r := range rows {
			last = r.Seq
			if w.chats[[2]string{r.Bot, r.Chat}] || w.senders[[2]string{r.Bot, r.Sender}] {
				theirs = append(theirs, r.Seq)
			} else if w.requests[r.Request] {
				asked = append(asked, r.Seq)
			}
		}
		err = w.each(theirs, func(f *forgetting, seq int64) {
			f.updates(bodies+` WHERE seq = $1`+withBody, emptied+` WHERE seq = $1`, seq)
		})
		if err == nil {
			err = w.each(asked, func(f *forgetting, seq int64) { f.exec(`UPDATE inbox SET request = '' WHERE seq = $1`, seq) })
		}
		if err != nil || len(rows) < sweepPage {
			return last, err
		}
	}
}

// outbox goes to the last row of now that stays: behind it may come what takes
// the numbers of rows that went.
func (w *sweep) outbox(words []string) (stays int64, err error) {
	for last := int64(0); ; {
		var rows []struct {
			Seq  int64  `db:"seq"`
			Bot  string `db:"bot"`
			Chat string `db:"chat"`
		}
		err := w.db.Select(w.ctx, &rows, `SELECT seq, bot, chat FROM outbox WHERE seq > $1 ORDER BY seq LIMIT $2`, last, sweepPage)
		if err != nil || len(rows) == 0 {
			return stays, err
		}
		first := last
		var theirs []int64
		for _, r := range rows {
			if last = r.Seq; w.chats[[2]string{r.Bot, r.Chat}] {
				theirs = append(theirs, r.Seq)
			} else {
				stays = r.Seq
			}
		}
		if err := w.each(theirs, func(f *forgetting, seq int64) { f.exec(`DELETE FROM outbox WHERE seq = $1`, seq) }); err != nil {
			return stays, err
		}
		if err := w.mentions(words, first, last); err != nil {
			return stays, err
		}
	}
}

// mentions forgets what was sent to others and names the user.
func (w *sweep) mentions(words []string, after, last int64) error {
	for _, word := range words {
		word, ok := mentioned(word)
		if !ok {
			continue
		}
		var found []int64
		err := w.db.Select(w.ctx, &found, `SELECT seq FROM outbox WHERE seq > $1 AND (`+named+` OR key >= 'notice:' AND key < 'notice;' AND replace(key, $3, '') <> key)
			AND seq <= $4 AND (state = 'sent' OR `+unsent+`)`, after, word, ":"+word+":", last)
		if err == nil {
			err = w.each(found, func(f *forgetting, seq int64) {
				f.exec(`DELETE FROM outbox WHERE seq = $1 AND (`+unsent+` OR state = 'sent' AND `+isNotice+`)`, seq, ":"+word+":")
				f.exec(emptySent+` WHERE seq = $1 AND state = 'sent'`, seq)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each does something with each row, in short transactions.
func (w *sweep) each(rows []int64, do func(*forgetting, int64)) error {
	for len(rows) > 0 {
		some := rows[:min(sweepStep, len(rows))]
		rows = rows[len(some):]
		err := w.db.Tx(w.ctx, func(tx *store.Tx) error {
			f := &forgetting{ctx: w.ctx, tx: tx}
			for _, seq := range some {
				do(f, seq)
			}
			if f.err != nil || len(f.files) == 0 {
				return f.err
			}
			return w.note(tx, f.files)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
