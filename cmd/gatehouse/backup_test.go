package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/cmd/gatehouse/backups"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/standby/vaultid"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/backup"
	"gatehouse/core/backup/archive"
	"gatehouse/core/coretest"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/store/storetest"
)

// contents are an archive's entries, with the bodies of files.
func contents(t *testing.T, file string) (entries map[string]archive.Entry, bodies map[string][]byte) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries, bodies = map[string]archive.Entry{}, map[string][]byte{}
	_, _, err = archive.Read(t.Context(), f, archive.Limits{}, func(e archive.Entry, r io.Reader) error {
		entries[e.Name] = e
		b, err := io.ReadAll(r)
		bodies[e.Name] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return entries, bodies
}

// rowsOf is every row of a closed database, as text, by table.
func rowsOf(t *testing.T, path string) map[string][]string {
	t.Helper()
	db, err := sqlx.Open("sqlite3", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var check string
	if err := db.Get(&check, `PRAGMA integrity_check`); err != nil || check != "ok" {
		t.Fatalf("%s: %q %v", path, check, err)
	}
	var tables []string
	if err := db.Select(&tables, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, table := range tables {
		rows, err := db.Queryx(`SELECT * FROM "` + table + `"`)
		if err != nil {
			t.Fatal(err)
		}
		all[table] = []string{}
		for rows.Next() {
			v, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			all[table] = append(all[table], fmt.Sprintf("%q", v))
		}
		_ = rows.Close()
		slices.Sort(all[table])
	}
	return all
}

// chatter has people write without a pause until stop; it is told of each answer.
func chatter(w *world, people []*telegramtest.User) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	for _, u := range people {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				sent := u.Send(fmt.Sprintf("How long should green tea brew? (%d)", n))
				if _, err := w.sim.AwaitMessage(ctx, u.DM(), func(m telegramtest.Message) bool { return m.FromBot() && m.ID > sent.ID }); err != nil {
					return
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// heldModel is a model that says a word and then waits for its clock.
func heldModel(t *testing.T) (*llmtest.Server, *coretest.Clock) {
	t.Helper()
	clock := coretest.NewClock(time.Now())
	return llmtest.New(t, llmtest.Options{Clock: clock, Key: modelKey, Choose: func(r llmtest.Request) llmtest.Reply {
		if !late(r) {
			return llmtest.Reply{}
		}
		return llmtest.Reply{Text: []string{"The late", " answer."}, Pause: time.Hour}
	}}), clock
}

// late reports whether the request is for the answer that takes long.
func late(r llmtest.Request) bool {
	return strings.HasSuffix(r.Messages[len(r.Messages)-1].Content, takesLong)
}

const takesLong = "A question that takes long"

func TestABackupUnderLoadIsPutBackAsItWasAndNothingIsSaidTwice(t *testing.T) {
	storetest.SQLiteOnly(t, "a server has no backup here")
	model, clock := heldModel(t)
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL, c.OpenaiAPIKey, c.RateLimit = fakeModel, model.URL(), values.NewSecret(modelKey), values.Rate{}
	})
	var people []*telegramtest.User
	for i := range 4 {
		people = append(people, w.guest(fmt.Sprintf("Guest %d", i)))
	}
	slow := w.guest("Slow")
	big := bytes.Repeat([]byte("a large note\n"), 1<<19) // 6.5 MB: streamed
	notes := filepath.Join(w.cfg.VaultPath, "Notes")
	for name, body := range map[string][]byte{"big.md": big, "ünïcode name.md": []byte("hello"), "empty.md": nil} {
		if err := os.MkdirAll(notes, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(notes, name), body, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	// One message is in hand while the backup is made, and is answered after it.
	asked := slow.Send(takesLong)
	w.until("the model is asked", func() bool { return slices.ContainsFunc(model.Requests(), late) })
	stop := chatter(w, people)
	w.until("people write", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'done'`) > 20 })

	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	before := w.count(`SELECT count(*) FROM runs`)
	report, err := backup.Make(t.Context(), backups.Source(w.cfg, "", version), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.until("people still write", func() bool { return w.count(`SELECT count(*) FROM runs`) > before+5 })
	stop()
	w.until("the late answer", func() bool {
		clock.Advance(2 * time.Hour) // one pause of the model
		said := w.said(slow.DM(), asked.ID)
		return len(said) > 0 && strings.Contains(said[len(said)-1], "late answer")
	})
	w.quiet()
	w.stop()

	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
		t.Errorf("beside the backup: %v", left)
	}
	entries, bodies := contents(t, file)
	if int64(len(bodies)) < report.Files {
		t.Errorf("%d entries for %+v", len(bodies), report)
	}

	there := configs.Default()
	*there = *w.cfg
	there.VaultPath, there.Addr = filepath.Join(t.TempDir(), "elsewhere"), "127.0.0.1:0"
	back, err := backup.Restore(t.Context(), backups.Target(there, control.By, "backup.tar.gz", ""), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if back.Messages == 0 || back.ID != report.ID {
		t.Errorf("what was in hand is not set aside: %+v", back)
	}
	sameVault(t, there.VaultPath, entries, bodies)
	sameRows(t, bodies[backup.DatabaseEntry], there.DatabasePath())

	// The same people at the same platform: nothing is said that was said.
	n := &world{t: t, sim: w.sim, cfg: there, log: &coretest.Log{}, clock: w.clock}
	count := func() (n int) {
		for _, u := range append(people, slow) {
			n += len(w.said(u.DM(), 0))
		}
		return n
	}
	was := count()
	n.start()
	t.Cleanup(n.stop)
	next := people[0].Send("Are you back?")
	if m := n.answers(people[0].DM(), next.ID); strings.Contains(m.Text, "code") {
		t.Errorf("somebody known is asked to pair: %q", m.Text)
	}
	n.quiet()
	if got := count(); got != was+1 {
		t.Errorf("%d messages of the bot, %d before the one that was asked for", got, was)
	}
	dead, err := n.app.inspect.Dead(t.Context(), 100)
	if err != nil || !slices.ContainsFunc(dead, deadText(takesLong)) {
		t.Errorf("what was in hand is not shown: %+v %v", dead, err)
	}
	var session string
	if err := n.app.db.Get(t.Context(), &session, `SELECT id FROM sessions WHERE message_count > 4 ORDER BY id LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	if text, err := n.exported(session); err != nil || !strings.Contains(text, "green tea brew") {
		t.Errorf("a session's words: %q %v", text, err)
	}
}

// sameVault compares a restored vault with the archive, both ways.
func sameVault(t *testing.T, dir string, entries map[string]archive.Entry, bodies map[string][]byte) {
	t.Helper()
	for name, e := range entries {
		path := filepath.Join(dir, strings.TrimPrefix(name, archive.Vault))
		if name == backup.DatabaseEntry || e.Kind != archive.File {
			continue
		}
		got, err := os.ReadFile(path)
		st, err2 := os.Stat(path)
		if err != nil || err2 != nil || !bytes.Equal(got, bodies[name]) || st.Mode().Perm() != e.Mode || !st.ModTime().Equal(e.Time) {
			t.Errorf("%s: %d bytes for %d, %v, %v", name, len(got), len(bodies[name]), st, err)
		}
	}
	for _, want := range []string{"Notes/big.md", "Notes/ünïcode name.md", "Notes/empty.md"} {
		if _, ok := entries[archive.Vault+want]; !ok {
			t.Errorf("%s is not in the backup", want)
		}
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if _, ok := entries[archive.Vault+filepath.ToSlash(rel)]; !ok && rel != "." && !strings.HasPrefix(filepath.Base(rel), "sessions.db") {
			t.Errorf("%s is in the restored vault and not in the backup (%v)", rel, err)
		}
		return nil
	})
}

// settledTables are what a restore changes.
var settledTables = []string{"inbox", "outbox", "lane", "runs", "run_events", "cursors", "metadata", "audit_events", "app_sessions"}

// sameRows compares the database of a backup with the restored one.
func sameRows(t *testing.T, was []byte, now string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "was.db")
	if err := os.WriteFile(path, was, 0o600); err != nil {
		t.Fatal(err)
	}
	before, after := rowsOf(t, path), rowsOf(t, now)
	for table, rows := range before {
		switch {
		case slices.Contains(settledTables, table):
			if len(rows) > len(after[table]) && table != "cursors" && table != "metadata" && table != "app_sessions" {
				t.Errorf("%s had %d rows and has %d", table, len(rows), len(after[table]))
			}
		case !reflect.DeepEqual(rows, after[table]):
			t.Errorf("%s differs: %d rows, %d rows", table, len(rows), len(after[table]))
		}
	}
	if len(before["sessions"]) < 5 || len(before["identities"]) < 5 {
		t.Errorf("the backup holds %d sessions and %d people", len(before["sessions"]), len(before["identities"]))
	}
}

func TestABackupHoldsNoSecretsAndLeavesOutWhatIsNoPartOfTheVault(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	token := filepath.Join(h.vault(), "telegram.token")
	for name, body := range map[string]string{
		"telegram.token": telegramtest.DefaultToken, ".claude/.credentials.json": `{"login": "secret"}`,
		".parachute/bots.yaml": "bots:\n  - name: support\n    platform: telegram\n    token: 654321:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\n",
		"settings.env":         "GATEHOUSE_LOG_LEVEL=info\n", "Notes/a.md": "a note",
	} {
		path := filepath.Join(h.vault(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"inner": "Notes/a.md", "outer": "/etc/hostname"} {
		if err := os.Symlink(to, filepath.Join(h.vault(), name)); err != nil {
			t.Fatal(err)
		}
	}
	h.env["GATEHOUSE_TELEGRAM_TOKEN_FILE"] = token
	h.env["GATEHOUSE_TELEGRAM_API_URL"] = "http://127.0.0.1:1"
	file := filepath.Join(h.dir, "b.tar.gz")
	if code, _, errs := h.run("pairing", "list"); code != 0 { // makes the database
		t.Fatal(errs)
	}
	code, out, errs := h.run("--env-file", filepath.Join(h.vault(), "settings.env"), "backup", file, "--json")
	if code != 0 || !strings.Contains(out, `"left_out"`) {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	entries, bodies := contents(t, file)
	for name, body := range bodies {
		for _, secret := range []string{telegramtest.DefaultToken, "654321:BBBB", `"login"`, cliPassword} {
			if bytes.Contains(body, []byte(secret)) {
				t.Errorf("%s holds %s", name, secret)
			}
		}
	}
	for _, name := range []string{"telegram.token", ".claude/.credentials.json", ".parachute/bots.yaml", "settings.env", "outer"} {
		if _, ok := entries[archive.Vault+name]; ok || !strings.Contains(out, name) {
			t.Errorf("%s: in the backup %v, and named %v", name, ok, strings.Contains(out, name))
		}
	}
	for _, name := range []string{"Notes/a.md", "inner"} {
		if _, ok := entries[archive.Vault+name]; !ok {
			t.Errorf("%s is not in the backup", name)
		}
	}
	for name := range entries {
		if strings.Contains(name, "Chat/sessions.db") || strings.HasSuffix(name, ".parachute/lock") {
			t.Errorf("%s is in the backup", name)
		}
	}
}

func TestBackupAndRestoreReportWhatIsWrongAndTouchNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	file := filepath.Join(h.dir, "b.tar.gz")
	if code, _, errs := h.run("backup", file); code != 1 || !strings.Contains(errs, "no database") {
		t.Errorf("without a database: %d %s", code, errs)
	}
	h.run("pairing", "list")
	if code, _, errs := h.run("backup", filepath.Join(h.vault(), "b.tar.gz")); code != 2 || !strings.Contains(errs, "is in the vault") {
		t.Errorf("into the vault: %d %s", code, errs)
	}
	if code, _, errs := h.run("backup", filepath.Join(h.dir, "none", "b")); code != 1 || !strings.Contains(errs, "no directory") {
		t.Errorf("into no directory: %d %s", code, errs)
	}
	if code, out, errs := h.run("backup", file); code != 0 || !strings.Contains(out, "Backed up") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := h.run("backup", file); code != 1 || !strings.Contains(errs, "already exists") {
		t.Errorf("over an older one: %d %s", code, errs)
	}
	if code, _, errs := h.run("restore", file); code != 1 || !strings.Contains(errs, "is not empty") {
		t.Errorf("over a vault: %d %s", code, errs)
	}
	bad := filepath.Join(h.dir, "bad")
	h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "new")
	for name, c := range map[string]struct {
		body []byte
		says string
	}{
		"cut":     {raw[:len(raw)/2], "cut off"},
		"changed": {append(append(bytes.Clone(raw[:len(raw)/2]), 0xff, 0x55, 0xaa), raw[len(raw)/2+3:]...), "archive"},
		"no tar":  {[]byte("a letter to somebody"), "not a backup"},
		"empty":   {nil, "cut off"},
	} {
		if err := os.WriteFile(bad, c.body, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := h.run("restore", bad); code == 0 || !strings.Contains(errs, c.says) {
			t.Errorf("%s: %d %s", name, code, errs)
		}
		if _, err := os.Lstat(h.vault()); err == nil {
			t.Errorf("%s: something was made at the vault's place", name)
		}
	}
	if code, _, errs := h.run("restore", filepath.Join(h.dir, "nothing")); code != 1 || !strings.Contains(errs, "there is no file") {
		t.Errorf("no file: %d %s", code, errs)
	}
	if code, out, errs := h.run("restore", file); code != 0 || !strings.Contains(out, "gatehouse doctor") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, out, errs := h.run("pairing", "list"); code != 0 || !strings.Contains(out, "No requests") {
		t.Errorf("the restored vault: %d %s %s", code, out, errs)
	}
}

// A database outside the vault was moved away and its log was not: SQLite would
// play that into the restored one.
func TestARestoreRefusesTheLogOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	file := filepath.Join(h.dir, "b.tar.gz")
	h.run("pairing", "list")
	if code, _, errs := h.run("backup", file); code != 0 {
		t.Fatal(errs)
	}
	h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "new")
	h.env["GATEHOUSE_DATABASE_URL"] = filepath.Join(h.dir, "other.db")
	for _, suffix := range []string{"-wal", "-journal"} {
		log := filepath.Join(h.dir, "other.db"+suffix)
		if err := os.WriteFile(log, []byte("pages of another database"), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := h.run("restore", file); code != 1 || !strings.Contains(errs, "move "+log+" away") {
			t.Errorf("%s: %d %s", suffix, code, errs)
		}
		if _, err := os.Lstat(h.vault()); err == nil {
			t.Errorf("%s: something was made at the vault's place", suffix)
		}
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errs := h.run("restore", file); code != 0 {
		t.Error(errs)
	}
}

// many fills a vault with small files.
func many(t *testing.T, vault string, n int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(vault, "many"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(vault, "many", fmt.Sprintf("%05d.md", i)), bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 2000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestABackupThatIsKilledLeavesNoBackup(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.run("pairing", "list")
	many(t, h.vault(), 3000)
	file := filepath.Join(h.dir, "b.tar.gz")
	killed := 0
	for _, size := range []int64{1, 100_000, 1_000_000} {
		p := h.start(nil, "backup", file)
		p.sees(func() bool {
			st, err := os.Stat(file + ".part")
			return err == nil && st.Size() >= size || p.ended() || isThere(file)
		})
		_ = p.cmd.Process.Kill()
		if p.end() != 0 {
			killed++
			if isThere(file) {
				contents(t, file) // it was whole already
				_ = os.Remove(file)
			}
		}
		_ = os.Remove(file)
	}
	if killed == 0 {
		t.Fatal("no backup was killed in the middle")
	}
	if code, out, errs := h.run("backup", file); code != 0 {
		t.Fatalf("the next one: %d %s %s", code, out, errs)
	}
	if left, _ := filepath.Glob(file + "*"); len(left) != 1 {
		t.Errorf("left beside it: %v", left)
	}
	if entries, _ := contents(t, file); len(entries) < 3000 {
		t.Errorf("%d entries", len(entries))
	}
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestARestoreThatIsKilledIsDoneByTheNextOne(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.run("pairing", "list")
	many(t, h.vault(), 3000)
	file := filepath.Join(h.dir, "b.tar.gz")
	if code, _, errs := h.run("backup", file); code != 0 {
		t.Fatal(errs)
	}
	h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "new")
	killed := 0
	for _, n := range []int{1, 700, 2000} {
		p := h.start(nil, "restore", file)
		p.sees(func() bool {
			names, _ := os.ReadDir(filepath.Join(h.vault(), ".gatehouse-restore", "tree", "many"))
			return len(names) >= n || isThere(filepath.Join(h.vault(), "many"))
		})
		_ = p.cmd.Process.Kill()
		if p.end() == 0 {
			break
		}
		killed++
		for _, args := range [][]string{{"serve"}, {"pairing", "list"}} {
			if code, _, errs := h.run(args...); code != 1 || !strings.Contains(errs, "not finished") {
				t.Errorf("%v on half a vault: %d %s", args, code, errs)
			}
		}
	}
	if killed == 0 {
		t.Fatal("no restore was killed in the middle")
	}
	if code, _, errs := h.run("restore", file); code != 0 {
		t.Fatalf("the next one: %d %s", code, errs)
	}
	_, bodies := contents(t, file)
	for name, body := range bodies {
		if rel, ok := strings.CutPrefix(name, archive.Vault+"many/"); ok {
			if got, err := os.ReadFile(filepath.Join(h.vault(), "many", rel)); err != nil || !bytes.Equal(got, body) {
				t.Fatalf("%s: %v", rel, err)
			}
		}
	}
	if isThere(filepath.Join(h.vault(), ".gatehouse-restore")) {
		t.Error("its folder is left")
	}
	if code, _, errs := h.run("pairing", "list"); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
}

func deadText(want string) func(inspect.DeadRow) bool {
	return func(d inspect.DeadRow) bool { return d.Text == want }
}

// The settings of a shell are not those of the service: the file from before the move to
// a server is still there, and would be backed up without a word.
func TestBackupAndTheCommandLineWarnWhereTheDatabaseIsOnAServer(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	if code, _, stderr := h.run("admins", "list"); code != 0 || strings.Contains(stderr, "Warning") {
		t.Fatalf("before: %d %s", code, stderr)
	}
	if err := os.WriteFile(filepath.Join(h.vault(), vaultid.File), []byte("ID\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "was served with a database on a server"
	for _, args := range [][]string{{"admins", "list"}, {"backup", filepath.Join(h.dir, "b.tar.gz")}} {
		if code, stdout, stderr := h.run(args...); code != 0 || !strings.Contains(stderr, "Warning: ") || !strings.Contains(stderr, want) || strings.Contains(stdout, want) {
			t.Errorf("%s: %d %s%s", args, code, stdout, stderr)
		}
	}
	if _, stdout, _ := h.run("doctor"); !strings.Contains(stdout, want) {
		t.Errorf("doctor: %s", stdout)
	}
	h.start(nil, "serve").says(want)
}
