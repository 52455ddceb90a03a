package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/memory/backup"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

// grep looks for words in every table's texts and in every file of a vault,
// the database's own among them.
func grep(t *testing.T, w *world, words ...string) (found []string) {
	t.Helper()
	note := func(where string, text []byte) {
		for _, word := range words {
			if i := bytes.Index(text, []byte(word)); i >= 0 {
				found = append(found, fmt.Sprintf("%s: %q in …%q…", where, word, text[max(0, i-80):min(len(text), i+len(word)+60)]))
			}
		}
	}
	for _, table := range w.tables() {
		rows, err := store.Rows(t.Context(), w.app.db, `SELECT * FROM "`+table+`"`)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			note("table "+table, fmt.Appendf(nil, "%v", r))
		}
	}
	err := filepath.WalkDir(w.cfg.VaultPath, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		note("name of a file", []byte(path))
		b, err := os.ReadFile(path)
		note(strings.TrimPrefix(path, w.cfg.VaultPath), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// tables are those of the database that have one of these columns; without columns all are.
func (w *world) tables(columns ...string) (tables []string) {
	w.t.Helper()
	query := `SELECT m.name AS name, c.name AS col FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name`
	if storetest.Postgres() {
		query = `SELECT t.table_name AS name, c.column_name AS col FROM information_schema.tables t JOIN information_schema.columns c USING (table_schema, table_name)
			WHERE t.table_schema = current_schema() AND t.table_type = 'BASE TABLE' ORDER BY t.table_name`
	}
	var rows []struct{ Name, Col string }
	if err := w.app.db.Select(w.t.Context(), &rows, query); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		if (len(columns) == 0 || slices.Contains(columns, r.Col)) && !slices.Contains(tables, r.Name) {
			tables = append(tables, r.Name)
		}
	}
	return tables
}

// upkeepAt does what upkeep does in that minute.
func (w *world) upkeepAt(minute int) { w.app.upkeep.Once(w.t.Context(), minute) }

// user is somebody's number.
func (w *world) user(u *telegramtest.User) int64 {
	w.t.Helper()
	id, _, err := w.app.pairing.People.User(w.t.Context(), w.app.db, core.Peer{Platform: "telegram", ID: fmt.Sprint(u.ID())})
	if err != nil || id == 0 {
		w.t.Fatalf("no user: %v", err)
	}
	return id
}

// A full life: Zebulon is let in, talks in a chat and a group, has a key,
// grants, a folder, files, a deleted conversation, a refused one.
type life struct {
	w            *world
	boss, zeb    *telegramtest.User
	other        *telegramtest.User
	group        *telegramtest.Group
	user         int64
	words        []string
	groupSession string
}

func newLife(t *testing.T, change func(*configs.Config)) (*life, *llmtest.Server) {
	t.Helper()
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.RateLimit = values.Rate{}
		if change != nil {
			change(c)
		}
	})
	l := &life{w: w, boss: w.boss()}
	l.other = w.guest("Ottilie")
	l.zeb = w.guest("Zebulon Quark")
	l.user = w.user(l.zeb)
	l.words = []string{"Zebulon", "Quark", fmt.Sprint(l.zeb.ID()), "xyzzyword", "xyzzyfirst", "xyzzyanswer", "xyzzygroup"}
	model.Script(llmtest.Reply{Text: []string{"An answer about xyzzyanswer."}})
	w.replies(l.zeb, "A question about xyzzyfirst")
	w.quiet()
	w.replies(l.zeb, "/new") // the first conversation is deleted: it lies in the trash
	w.quiet()
	var first string
	if err := w.app.db.Get(t.Context(), &first, `SELECT id FROM sessions WHERE user_id = $1 ORDER BY created_at LIMIT 1`, l.user); err != nil {
		t.Fatal(err)
	}
	err := w.app.conversations.Delete(t.Context(), first, nil, cli)
	if err != nil {
		t.Fatal(err)
	}
	w.replies(l.zeb, "A question about xyzzyword")
	w.quiet()
	l.group = w.group(telegramtest.Supergroup, l.boss, l.zeb, l.other)
	for _, u := range []*telegramtest.User{l.zeb, l.other} {
		text := "tell me about the weather"
		if u == l.zeb {
			text = "tell me about xyzzygroup"
		}
		m := w.post(u, l.group.Conversation(), telegramtest.Outgoing{Text: w.mention(text)})
		w.answers(l.group.Conversation(), m.ID)
		w.quiet()
	}
	if err := w.app.db.Get(t.Context(), &l.groupSession, `SELECT session_id FROM chats WHERE place <> '' AND session_id IS NOT NULL`); err != nil {
		t.Fatal(err)
	}
	l.fill(t)
	return l, model
}

// fill adds what people do not do in a chat.
func (l *life) fill(t *testing.T) {
	t.Helper()
	a, ctx := l.w.app, t.Context()
	folder := filepath.Join(l.w.cfg.VaultPath, "Guests", fmt.Sprint(l.user))
	file := "Chat/assets/2026-01-02/0123456789ab-picture.txt"
	trashed := filepath.Join(l.w.cfg.VaultPath, ".parachute", "trash", "20260101T000000.000000Z-"+vault.OfGuest(l.user, fmt.Sprint(l.user)))
	for _, path := range []string{filepath.Join(folder, "deep", "notes.md"), filepath.Join(l.w.cfg.VaultPath, file), filepath.Join(trashed, "deep", "notes.md")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("xyzzyword of Zebulon"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := core.Stamp(time.Now())
	err := a.db.Tx(ctx, func(tx *store.Tx) error {
		for _, s := range []struct {
			query string
			args  []any
		}{
			{`INSERT INTO attachments (path, user_id, session_id, run, at) VALUES ($1, $2, 's', 'r', $3)`, []any{file, l.user, now}},
			{`INSERT INTO api_keys (id, label, sha256, user_id, trust_level, created_at) VALUES ('k1', 'Zebulon''s laptop', 'x', $1, 'sandboxed', $2)`, []any{l.user, now}},
			{`INSERT INTO asks (id, kind, run, user_id, asker, payload, created_at) VALUES ('a1', 'permission', 'r', 1, $1, '{"text": "xyzzyword"}', $2)`, []any{l.user, now}},
			{`INSERT INTO run_events (run, attempt, n, data) SELECT id, 1, 1000, '"xyzzyword"' FROM runs WHERE user_id = $1`, []any{l.user}},
			// A slow answer to somebody else is stored while it is made, and begins with the title of its conversation.
			{`INSERT INTO run_events (run, attempt, n, data) SELECT id, 1, 1001, '{"title":"tell me about xyzzygroup"}' FROM runs WHERE user_id <> $1 AND session_id = $2`, []any{l.user, l.groupSession}},
			{`INSERT INTO responses (id, run, user_id, session_id, number, state, created, bytes, request, answer) VALUES ('resp_1', 'r', $1, 's', 1, 'ended', $2, 9, '"xyzzyword"', '"xyzzyanswer"')`, []any{l.user, now}},
			{`INSERT INTO admin_accounts (user_id, name, argon2id) VALUES ($1, 'Zebulon', 'x')`, []any{l.user}},
			{`INSERT INTO admin_totp (user_id, secret, at) VALUES ($1, 'xyzzyword', $2)`, []any{l.user, now}},
			{`INSERT INTO admin_recovery (user_id, sha256) VALUES ($1, 'xyzzyword')`, []any{l.user}},
		} {
			if _, err := tx.Exec(ctx, s.query, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Blocked elsewhere, and let in again: both leave traces.
	if err := a.pairing.People.BlockUser(ctx, "elsewhere", "telegram", fmt.Sprint(l.zeb.ID()), cli); err != nil {
		t.Fatal(err)
	}
	l.w.exec(`INSERT INTO tool_grants (id, session_id, user_id, trust, kind, pattern, granted_by, created_at) VALUES ('g1', 's', $1, 'vault', 'read', 'xyzzyword/**', 'x', $2)`, l.user, now) // a block ends what was granted before
}

func TestAForgottenPersonLeavesNothingInDatabaseAndVaultAndIsAStranger(t *testing.T) {
	t.Parallel()
	l, _ := newLife(t, nil)
	w := l.w
	if found := grep(t, w, l.words...); len(found) < 15 {
		t.Fatalf("the world is not filled: %q", found)
	}
	others := w.count(`SELECT count(*) FROM sessions WHERE user_id <> $1`, l.user)
	f, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(l.user), cli, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Sessions < 2 || f.Turns != 1 || f.Files != 1 || f.Compacted == storetest.Postgres() || len(f.Left) != 0 {
		t.Errorf("%+v", f)
	}
	for _, hit := range grep(t, w, l.words...) {
		t.Errorf("still there: %s", hit)
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'user.forget' AND subject = $1`, fmt.Sprint(l.user)); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	if n := w.count(`SELECT count(*) FROM sessions`); n != others {
		t.Errorf("%d sessions, others had %d", n, others)
	}
	// What others said in the group is there, and goes on.
	text, err := w.exported(l.groupSession)
	if err != nil || !strings.Contains(text, "about the weather") || !strings.Contains(text, "erased") {
		t.Errorf("the group: %v\n%s", err, text)
	}
	m := w.post(l.other, l.group.Conversation(), telegramtest.Outgoing{Text: w.mention("and tomorrow?")})
	w.answers(l.group.Conversation(), m.ID)
	// The index is filled again with what is left.
	w.upkeepAt(60)
	if hits := grep(t, w, l.words...); len(hits) != 0 {
		t.Errorf("in the index: %q", hits)
	}
	for word, want := range map[string]bool{"weather": true, "xyzzygroup": false} {
		if status, body := w.call("GET", "/api/chat?search="+word, nil); status != 200 || strings.Contains(body, l.groupSession) != want {
			t.Errorf("search for %s: %d %s", word, status, body)
		}
	}
	// Again: nothing is left to do.
	if again, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(l.user), cli, nil); err != nil || again.Sessions+again.Turns+again.Files != 0 {
		t.Errorf("a second time: %+v %v", again, err)
	}
	if _, err := w.app.eraser.Forget(t.Context(), "1", cli, nil); core.KindOf(err) != core.Invalid {
		t.Errorf("the operator: %v", err)
	}
	// A stranger, under another number once let in.
	sent := l.zeb.Send("hello again")
	if m := w.answers(l.zeb.DM(), sent.ID); !strings.Contains(m.Text, "code") {
		t.Errorf("they are told %q", m.Text)
	}
	r := w.request(l.zeb)
	if _, err := w.app.pairing.Approve(t.Context(), r.ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	if w.user(l.zeb) == l.user {
		t.Error("the number is used again")
	}
}

// errCut is a crash.
var errCut = errors.New("cut")

// Whatever the moment at which forgetting ends, doing it again finishes it; and
// upkeep does, without being asked.
func TestForgettingThatIsCutShortIsFinished(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"the command", "upkeep"} {
		for _, cut := range []string{"access", "a step", "rows", "files"} {
			if cut == "files" && storetest.Postgres() {
				continue // a server's files are not rewritten, so nothing is left to cut
			}
			t.Run(by+" after "+cut, func(t *testing.T) { forgetCutShort(t, by, cut) })
		}
	}
}

func forgetCutShort(t *testing.T, by, cut string) {
	l, _ := newLife(t, nil)
	w, ref := l.w, fmt.Sprintf("telegram:%d", l.zeb.ID())
	ctx, cancel := context.WithCancelCause(t.Context())
	at := map[string]string{"access": "erasing messages", "a step": "erasing rows: some 500 so far", "rows": "erasing files", "files": "rewriting the database"}[cut]
	_, err := w.app.eraser.Forget(ctx, ref, cli, func(doing string) {
		if doing == at {
			cancel(errCut)
		}
	})
	if context.Cause(ctx) != errCut || err == nil {
		t.Fatalf("not cut: %v", err)
	}
	if _, err := w.app.eraser.Forget(ctx, ref, cli, nil); err == nil {
		t.Fatal("it ends well")
	}
	w.stop()
	w.start()
	t.Cleanup(w.stop)
	if by == "upkeep" {
		w.upkeepAt(60)
	} else if _, err := w.app.eraser.Forget(t.Context(), ref, cli, nil); err != nil {
		t.Fatal(err)
	}
	for _, hit := range grep(t, w, l.words...) {
		t.Errorf("still there: %s", hit)
	}
	if n := w.count(`SELECT count(*) FROM metadata WHERE key LIKE 'forget%'`); n != 0 {
		t.Errorf("%d forgettings are still open", n)
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'user.forget' AND via = 'cli' AND subject = $1`, fmt.Sprint(l.user)); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}

func TestForgettingAMemberBlanksOnlyTheirTurnsInAGroupsConversationInTheTrash(t *testing.T) {
	t.Parallel()
	l, _ := newLife(t, nil)
	w := l.w
	if err := w.app.conversations.Delete(t.Context(), l.groupSession, nil, cli); err != nil {
		t.Fatal(err)
	}
	if f, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(l.user), cli, nil); err != nil || f.Turns != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	for _, hit := range grep(t, w, l.words...) {
		t.Errorf("still there: %s", hit)
	}
	if len(grep(t, w, "about the weather")) == 0 {
		t.Error("what another member wrote is gone")
	}
}

// What is erased is gone from the tables; the pages of the file wait for who reads it.
func TestForgettingWhileAnotherProgramReadsTheDatabaseSaysWhatIsLeft(t *testing.T) {
	storetest.SQLiteOnly(t, "its file is opened here")
	t.Parallel()
	l, _ := newLife(t, nil)
	w := l.w
	other, err := sql.Open("sqlite3", w.app.db.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	reads, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reads.QueryRow(`SELECT count(*) FROM metadata`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	f, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(l.user), cli, nil)
	if err != nil || !strings.Contains(strings.Join(f.Left, " "), "Another program reads the database") {
		t.Errorf("%+v, %v", f, err)
	}
	if !strings.Contains(strings.Join(f.Left, " "), "at most 1 GiB") {
		t.Errorf("what a larger database needs is not said: %q", f.Left)
	}
	if err := reads.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.eraser.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, hit := range grep(t, w, l.words...) {
		t.Errorf("still there once it is read no more: %s", hit)
	}
}

// The hourly rewriting that a reader keeps from ending leaves a line in the log each time.
func TestARewritingThatIsPutOffIsLogged(t *testing.T) {
	storetest.SQLiteOnly(t, "its file is opened here")
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	w.exec(`INSERT INTO metadata (key, value, updated_at) VALUES ('forget-pages:a', '', '')`)
	other, err := sql.Open("sqlite3", w.app.db.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	reads, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reads.Rollback() }()
	var n int
	if err := reads.QueryRow(`SELECT count(*) FROM metadata`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	w.app.upkeep.Once(t.Context(), 1)
	if log := w.log.String(); !strings.Contains(log, "task=forgetting") || !strings.Contains(log, "Another program reads the database") {
		t.Errorf("the log says nothing of it: %s", log)
	}
	if n := w.count(`SELECT count(*) FROM metadata WHERE key = 'forget-pages:a'`); n != 1 {
		t.Error("it is not tried again")
	}
}

// A turn of another member has read what the member wrote, and a note on the conversation is
// stored before it ends.
func TestForgettingAMemberReachesANoteThatIsStoredWhileTheGroupIsAnswered(t *testing.T) {
	t.Parallel()
	l, model := newLife(t, nil)
	w := l.w
	model.Script(llmtest.Reply{Text: []string{"It begins"}, Hang: true})
	w.post(l.other, l.group.Conversation(), telegramtest.Outgoing{Text: w.mention("and tomorrow?")})
	w.until("it runs", func() bool { return w.app.conversations.answering(l.groupSession) })
	if f, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(l.user), cli, nil); err != nil || len(f.Left) == 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
		s, err := w.app.sessions.ByID(t.Context(), tx, l.groupSession)
		if err == nil {
			_, err = w.app.handoffs.Add(t.Context(), tx, &s, backup.Backup{Model: fakeModel, Text: "## GOAL\nxyzzygroup", Trigger: backup.Threshold, Covers: "m"}, backup.Seen{})
		}
		return err
	})
	if err != nil || w.count(`SELECT count(*) FROM context_backups`) != 1 {
		t.Fatalf("the note is not stored, %v", err)
	}
	w.app.running.AbortUser("telegram", w.user(l.other))
	w.until("it has ended", func() bool { return !w.app.conversations.answering(l.groupSession) })
	w.quiet()
	if _, err := w.app.eraser.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`SELECT count(*) FROM context_backups`); n != 0 {
		t.Errorf("%d notes are left", n)
	}
}

// What runs for the person ends first; nothing of it is written afterwards.
func TestForgettingStopsWhatRunsFirst(t *testing.T) {
	l, model := newLife(t, nil)
	w := l.w
	model.Script(llmtest.Reply{Text: []string{"xyzzyword begins"}, Hang: true})
	l.zeb.Send("A question about xyzzyword that is answered for ever")
	w.until("it runs", func() bool { return w.app.running.Busy(l.user) })
	if _, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(l.user), cli, nil); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	for _, hit := range grep(t, w, l.words...) {
		t.Errorf("still there: %s", hit)
	}
}

// A stranger who was never let in can be forgotten too, by the platform's id.
func TestAStrangerIsForgottenByThePlatformsID(t *testing.T) {
	w, _ := newModelWorld(t, nil)
	w.boss()
	eve := w.sim.NewUser("Evangeline")
	eve.Send("let me in, xyzzyword")
	w.request(eve)
	w.quiet()
	f, err := w.app.eraser.Forget(t.Context(), fmt.Sprintf("telegram:%d", eve.ID()), cli, nil)
	if err != nil || f.User != 0 {
		t.Fatalf("%+v %v", f, err)
	}
	w.quiet()
	for _, hit := range grep(t, w, "Evangeline", "xyzzyword", fmt.Sprint(eve.ID())) {
		t.Errorf("still there: %s", hit)
	}
	if _, err := w.app.eraser.Forget(t.Context(), fmt.Sprintf("telegram:%d", eve.ID()), cli, nil); core.KindOf(err) != core.NotFound {
		t.Errorf("a second time: %v", err)
	}
}

func TestForgetAndExportOfAPersonOnTheCommandLine(t *testing.T) {
	sim := newSim(t)
	h := newHome(t, sim)
	ada := sim.NewUser("Ada Lovelace")
	ada.Send("How long should green tea brew?")
	p := h.serve(nil)
	hear(t, sim, ada.DM(), 0, "Your code is")
	var rs []core.PairingRequest
	_, out, _ := h.run("pairing", "list", "--json")
	if err := json.Unmarshal([]byte(out), &rs); err != nil || len(rs) != 1 {
		t.Fatal(out)
	}
	h.run("pairing", "approve", rs[0].Code)
	hear(t, sim, ada.DM(), 0, "tea")
	ref := fmt.Sprintf("telegram:%d", ada.ID())
	dir := filepath.Join(h.dir, "ada")
	p.sees(func() bool { // the answer is shown before its row is committed
		_ = os.RemoveAll(dir)
		h.run("export", "--user", ref, "-o", dir)
		files, _ := filepath.Glob(filepath.Join(dir, "conversations", "*.md"))
		if len(files) != 1 {
			return false
		}
		b, _ := os.ReadFile(files[0])
		return strings.Contains(string(b), "### Assistant")
	})
	b, err := os.ReadFile(filepath.Join(dir, "person.json"))
	var person struct {
		Names      []string
		Identities []map[string]any
		Usage      []map[string]any
	}
	if err != nil || json.Unmarshal(b, &person) != nil || !slices.Contains(person.Names, "Ada Lovelace") || len(person.Identities) != 1 {
		t.Errorf("%v %s", err, b)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"export", "--user", ref, "-o", dir}, "is there already"},
		{[]string{"export", "--user", "telegram:1", "-o", dir + "2"}, "no person has"},
		{[]string{"export", "--user", ref}, "-o DIRECTORY"},
		{[]string{"export"}, "--user"},
		{[]string{"forget", ref}, "--yes"},
		{[]string{"forget", "Ada", "--yes"}, "telegram:12345678"},
		{[]string{"forget", "1", "--yes"}, "operator"},
	} {
		if code, out, errs := h.run(c.args...); code == 0 || !strings.Contains(errs, c.says) {
			t.Errorf("%v: %d %s %s", c.args, code, out, errs)
		}
	}
	if code, _, errs := h.run("forget", ref); code != exitFailure || !strings.Contains(errs, "nothing was deleted: this needs a confirmation; type yes, or give --yes") {
		t.Errorf("without a terminal: %d %s", code, errs)
	}
	if code, out, errs := h.run("forget", ref, "--yes", "--json"); code != 0 || !strings.Contains(out, `"sessions": 1`) {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, _, errs := h.run("forget", ref, "--yes"); code != 1 || !strings.Contains(errs, "no person has") {
		t.Errorf("a second time: %d %s", code, errs)
	}
}

func TestReindexOnTheCommandLineFillsALostDatabase(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	code, out, errs := h.run("claim", "--json")
	var claim struct{ Code string }
	if code != 0 || json.Unmarshal([]byte(out), &claim) != nil {
		t.Fatal(errs)
	}
	olga := sim.NewUser("Olga")
	olga.Send("/claim " + claim.Code)
	p := h.serve(nil)
	hear(t, sim, olga.DM(), 0, "You are the owner now")
	asked := olga.Send("How long should green tea brew?")
	hear(t, sim, olga.DM(), asked.ID, "tea")
	p.sees(func() bool {
		_, out, _ := h.run("export", "--user", "1", "-o", filepath.Join(h.dir, "o"))
		files, _ := filepath.Glob(filepath.Join(h.dir, "o", "conversations", "*.md"))
		_ = os.RemoveAll(filepath.Join(h.dir, "o"))
		return len(files) == 1 && out != ""
	})
	_ = p.cmd.Process.Signal(os.Interrupt)
	p.end()
	dbs, _ := filepath.Glob(filepath.Join(h.vault(), "Chat", "sessions.db*"))
	for _, f := range dbs {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, errs := h.run("reindex"); code != 0 || !strings.Contains(out, "1 conversation added") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	h.serve(nil)
	if code, out, errs := h.run("reindex", "--json"); code != 0 || !strings.Contains(out, `"kept": 1`) {
		t.Errorf("while the gateway serves: %d %s %s", code, out, errs)
	}
}
