package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"gatehouse/core/queue/flight"
)

// repeatMark is what a person reads under a message that may stand there twice.
const repeatMark = "possible repeat"

// A snapshot is what the database says of work that is under way.
type snapshot struct {
	sending []outboxState // marked as being sent, not as an edit, and bytes may have left
	begun   int           // marked as being sent, and nothing had left
	again   []outboxState // the same, of a bot whose platform knows a message again
	ready   []outboxState // stored, not yet begun
	running int           // turns that had begun
	held    int           // of these, answers that were whole in the transcript
}

type outboxState struct {
	Key     string `db:"key"`
	Ordinal int    `db:"ordinal"`
	Bot     string `db:"bot"`
	Chat    string `db:"chat"`
	Body    string `db:"body"`
	State   string `db:"state"`

	Seq      int64 `db:"seq"`
	Attempts int   `db:"attempts"`
}

func (o outboxState) id() string { return fmt.Sprint(o.Key, "/", o.Ordinal) }

// look copies the dead child's database and reads the copy: the original is
// for the next start alone.
func (r *rig) look() snapshot {
	r.t.Helper()
	db := r.openCopy()
	defer db.Close()
	var s snapshot
	r.sql(db.Select(&s.sending, `SELECT key, ordinal, bot, chat, body, state, seq, attempts FROM outbox WHERE state = 'sending' AND replaces = '' AND bot = 'telegram'`))
	s.sending = slices.DeleteFunc(s.sending, func(o outboxState) bool {
		p := r.phase(db, o)
		if p == flight.Marked {
			s.begun++
		}
		return p == flight.Marked || p == flight.Answered
	})
	r.sql(db.Select(&s.again, `SELECT key, ordinal, bot, chat, body, state FROM outbox WHERE state = 'sending' AND replaces = '' AND bot = 'discord'`))
	r.sql(db.Select(&s.ready, `SELECT key, ordinal, bot, chat, body, state FROM outbox WHERE state = 'ready'`))
	r.sql(db.Get(&s.running, `SELECT count(*) FROM runs WHERE state = 'running'`))
	var open []string
	r.sql(db.Select(&open, `SELECT id FROM runs WHERE state = 'running'`))
	lines := r.transcripts()
	for _, id := range open {
		if run := lines[id]; run != nil && run.answers > 0 {
			s.held++
		}
	}
	return s
}

// phase returns how far the dead child had come with a row, as the next start will read.
func (r *rig) phase(db *sqlx.DB, o outboxState) flight.Phase {
	r.t.Helper()
	var epoch int64
	r.sql(db.Get(&epoch, `SELECT epoch FROM lease WHERE name = $1`, "bot:"+o.Bot))
	path := filepath.Join(r.vault, "Chat", "sessions.db")
	rec := flight.Open(filepath.Join(r.vault, ".parachute", "sends"), databaseID(path), slog.New(slog.DiscardHandler))
	defer rec.Close()
	return rec.Found(flight.Mark{Seq: o.Seq, Epoch: epoch, Attempt: o.Attempts}).Phase
}

func (r *rig) sql(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// openCopy opens a copy of the database, or the one on a server itself.
func (r *rig) openCopy() *sqlx.DB {
	r.t.Helper()
	if r.database != "" {
		db, err := sqlx.Open("pgx", r.database)
		r.sql(err)
		return db
	}
	dir, err := os.MkdirTemp(r.dir, "copy")
	r.sql(err)
	r.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	from := filepath.Join(r.vault, "Chat", "sessions.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(from + suffix)
		if os.IsNotExist(err) {
			continue
		}
		r.sql(err)
		r.sql(os.WriteFile(filepath.Join(dir, "copy.db"+suffix), b, 0o600))
	}
	db, err := sqlx.Open("sqlite3", "file:"+filepath.Join(dir, "copy.db"))
	r.sql(err)
	return db
}

// note remembers which answers were in doubt when the child died. Those to
// Discord are not: they are sent again, under the same nonce.
func (r *rig) note(s snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range s.sending {
		r.sending[o.id()] = true
		for _, t := range crashToken.FindAllString(o.Body, -1) {
			r.doubt[t] = true
		}
	}
	r.changed.Broadcast()
}

// A transcribed run is what the transcripts hold of one run.
type transcribedRun struct {
	tokens  []string
	asks    int
	answers int
	covered []string
}

// transcripts reads every line of every transcript in the vault, by run.
func (r *rig) transcripts() map[string]*transcribedRun {
	r.t.Helper()
	runs := map[string]*transcribedRun{}
	uuids := map[string]bool{}
	root := filepath.Join(r.vault, ".claude", "projects")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			r.transcribed(lines.Bytes(), runs, uuids)
		}
		return lines.Err()
	})
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return runs
}

func (r *rig) transcribed(raw []byte, runs map[string]*transcribedRun, uuids map[string]bool) {
	var l struct {
		Type, UUID, RequestID string
		Message               json.RawMessage
		IsCompactSummary      bool
	}
	if json.Unmarshal(raw, &l) != nil || l.IsCompactSummary || l.Type == "system" {
		return // torn by a kill: mended when the conversation goes on; or of no run
	}
	if uuids[l.UUID] {
		r.t.Errorf("line %s stands twice in the transcripts", l.UUID)
	}
	uuids[l.UUID] = true
	run := runs[l.RequestID]
	if run == nil {
		run = &transcribedRun{}
		runs[l.RequestID] = run
	}
	found := crashToken.FindAllString(string(l.Message), -1)
	switch l.Type {
	case "user":
		run.asks++
		run.tokens = append(run.tokens, found...)
	case "assistant":
		run.answers++
		run.covered = append(run.covered, found...)
	}
}

// prove holds what spec says against all that is left: the database, the
// transcripts and what people saw. The child must have ended.
func (r *rig) prove() {
	r.t.Helper()
	db := r.openCopy()
	defer db.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	owner := r.proveTranscripts()
	unknown := r.proveOutbox(db, owner)
	r.proveInbox(db, owner)
	r.forgetPreviews(db)
	for _, c := range r.chats {
		r.proveChat(c.key, unknown)
	}
	var busy []string
	r.sql(db.Select(&busy, `SELECT key FROM lane WHERE owner <> '' OR pending <> 0`))
	if len(busy) > 0 {
		r.t.Errorf("%d lanes are not idle: %v", len(busy), busy[:min(len(busy), 5)])
	}
}

// proveTranscripts: every message is in exactly one run's transcript, every
// run has one answer, and that answer is to what was asked. It returns the
// run of each message.
func (r *rig) proveTranscripts() map[string]string {
	owner := map[string]string{}
	for id, run := range r.transcripts() {
		if run.asks != 1 || run.answers != 1 || !slices.Equal(run.tokens, run.covered) {
			r.t.Errorf("run %q has %d questions (%v) and %d answers (%v) in the transcript", id, run.asks, run.tokens, run.answers, run.covered)
		}
		for _, t := range run.tokens {
			if owner[t] != "" {
				r.t.Errorf("message %s is in the transcript of run %s and of run %s", t, owner[t], id)
			}
			owner[t] = id
		}
	}
	for _, list := range r.posted {
		for _, t := range list {
			if owner[t] == "" {
				r.t.Errorf("message %s is in no transcript", t)
			}
		}
	}
	return owner
}

// proveOutbox: every run has exactly one final, sent or unknown; unknown are
// some of those that were being sent at a kill, and nothing else. It returns the
// messages whose answer is unknown.
func (r *rig) proveOutbox(db *sqlx.DB, owner map[string]string) map[string]bool {
	var rows []outboxState
	r.sql(db.Select(&rows, `SELECT key, ordinal, bot, chat, body, state FROM outbox ORDER BY seq`))
	finals, unknown := map[string]int{}, map[string]bool{}
	for _, o := range rows {
		if o.Ordinal == 0 {
			finals[o.Key]++
		} else if tail := lastPart.FindString(o.Body); tail != "" {
			r.proveTail(o, tail)
			r.tails++
		}
		switch doubtful := r.sending[o.id()]; {
		case o.State == "sent": // that nobody reads it twice is for proveChat
			delete(r.sending, o.id())
			continue
		case o.State != "unknown":
			r.t.Errorf("outbox row %s is %s at the end", o.id(), o.State)
		case !doubtful:
			r.t.Errorf("outbox row %s is unknown, but it was not being sent at any kill", o.id())
		}
		delete(r.sending, o.id())
		for _, t := range crashToken.FindAllString(o.Body, -1) {
			unknown[t] = true
		}
	}
	for id := range r.sending {
		r.t.Errorf("outbox row %s was being sent at a kill and is gone", id)
	}
	for t, run := range owner {
		if n := finals["run:"+run]; n != 1 {
			r.t.Errorf("run %s (message %s) has %d finals", run, t, n)
		}
	}
	return unknown
}

// forgetPreviews leaves out the previews on Discord that were on their way at a
// kill: no final knew of them, so they stay in the chat as they were.
func (r *rig) forgetPreviews(db *sqlx.DB) {
	var finals []string
	r.sql(db.Select(&finals, `SELECT platform_message_id FROM outbox WHERE bot = 'discord' AND state = 'sent'`))
	final := map[string]bool{}
	for _, id := range finals {
		final[id] = true
	}
	for chat, list := range r.said {
		r.said[chat] = slices.DeleteFunc(list, func(u utterance) bool { return u.silent && u.whole() && !final[u.id] })
	}
}

// proveTail: the last part of a long answer is read once, behind the first, and maybe again with
// the mark of a repeat; or it is unknown.
func (r *rig) proveTail(o outboxState, tail string) {
	n, marked, head := 0, 0, "as "+strings.TrimPrefix(tail, "end of ")+" "
	for _, list := range r.said {
		for i, u := range list {
			if !strings.HasSuffix(strings.TrimSpace(u.text), tail) && !strings.Contains(u.text, repeatMark) || !strings.Contains(u.text, tail) {
				continue
			}
			n++
			if strings.Contains(u.text, repeatMark) {
				marked++
			}
			before := slices.IndexFunc(list, func(o utterance) bool { return strings.Contains(o.text+" ", head) })
			if before > i {
				r.t.Errorf("%q is read before its first part", tail)
			}
		}
	}
	if n > 1 && !(n == 2 && marked == 1) || n == 0 && o.State != "unknown" {
		r.t.Errorf("%q is read %d times; its row is %s", tail, n, o.State)
	}
}

// proveInbox: one row for each update, done, and in the run that the
// transcripts name.
func (r *rig) proveInbox(db *sqlx.DB, owner map[string]string) {
	posted := 0
	for _, list := range r.posted {
		posted += len(list)
	}
	var states []struct {
		State string `db:"state"`
		N     int    `db:"n"`
		Tries int    `db:"tries"`
	}
	r.sql(db.Select(&states, `SELECT state, count(*) AS n, max(attempts) AS tries FROM inbox WHERE kind = 'message' AND bot <> 'api' GROUP BY state`))
	for _, s := range states {
		if s.State != "done" || s.N != posted {
			r.t.Errorf("%d inbox rows are %s (at most %d tries); %d messages were posted", s.N, s.State, s.Tries, posted)
		}
	}
	if len(states) == 0 && posted > 0 {
		r.t.Error("the inbox is empty")
	}
	var runs []struct {
		ID    string `db:"id"`
		State string `db:"state"`
		N     int    `db:"n"`
	}
	r.sql(db.Select(&runs, `SELECT runs.id, runs.state, (SELECT count(*) FROM inbox WHERE inbox.run = runs.id) AS n FROM runs
		WHERE NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.run = runs.id AND inbox.bot = 'api')`))
	members := map[string]int{}
	for _, run := range owner {
		members[run]++
	}
	for _, run := range runs {
		if run.State != "done" || run.N != members[run.ID] {
			r.t.Errorf("run %s is %s with %d messages; its transcript has %d", run.ID, run.State, run.N, members[run.ID])
		}
	}
}

// proveChat: people read the answers in the order of their messages, each
// once; a repeat is marked as one; only what is unknown may be missing.
func (r *rig) proveChat(chat string, unknown map[string]bool) {
	var read []string
	for _, u := range r.said[chat] {
		if !u.whole() {
			continue
		}
		if strings.Contains(u.text, repeatMark) {
			for _, t := range u.tokens {
				if !slices.Contains(read, t) { // the first try did not arrive
					read = append(read, t)
				}
			}
			continue
		}
		read = append(read, u.tokens...)
	}
	want := slices.DeleteFunc(slices.Clone(r.posted[chat]), func(t string) bool {
		return unknown[t] && !slices.Contains(read, t)
	})
	if !slices.Equal(read, want) {
		r.t.Errorf("in %s people read answers to\n%v\nand should have read\n%v", chat, read, want)
	}
}
