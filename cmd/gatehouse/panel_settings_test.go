package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/admin/settings"
	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/backup/directory"
	"gatehouse/core/jobs"
	"gatehouse/core/store/storetest"
)

var byPanel = core.Actor{User: core.Operator, Via: "panel"}

// again stops the gateway and starts it anew on the same vault.
func (w *world) again() {
	w.t.Helper()
	w.stop()
	w.cfg.Addr = "127.0.0.1:0"
	w.start()
	w.t.Cleanup(w.stop)
}

// What is set in the panel holds for the very next message, and after a restart.
func TestSettingsOfThePanelApplyAtOnceAndAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.browser()
	page := b.page("/admin/settings/bots")
	first := w.sim.NewUser("First")
	first.Send("hello")
	w.hearsText(first, "code")
	if _, body := b.submit("/admin/settings/bots/telegram/policy", page, url.Values{"dm_policy": {"open"}, "sure": {"yes"}, "dm_trust": {"sandboxed"}, "group_trust": {"vault"}}); !strings.Contains(body, "treats strangers so") {
		t.Fatal(body)
	}
	second := w.sim.NewUser("Second")
	second.Send("How long should green tea brew?")
	w.hearsText(second, "two minutes")
	b.set("limits", url.Values{"BUSY_MODE": {"queue"}})
	if body := b.set("models", url.Values{"BUDGET_USER_DAY": {"1"}}); !strings.Contains(body, "1 setting is changed") {
		t.Fatal(body)
	}
	second.Send("And black tea?")
	w.hearsText(second, "used up")
	if w.app.settings.Now().BusyMode != "queue" {
		t.Error("the busy mode does not hold")
	}

	w.again()
	third := w.sim.NewUser("Third")
	third.Send("How long should green tea brew?")
	w.hearsText(third, "used up") // let in, and bounded
	found := map[string]string{}
	for _, s := range (settingsView{w.app}).Settings() {
		found[strings.TrimPrefix(s.Name, configs.Prefix+"_")] = s.Value + " from " + s.Source
	}
	if found["BUDGET_USER_DAY"] != "1 from panel" || found["TELEGRAM_DM_POLICY"] != "open from panel" {
		t.Errorf("after a restart: %q, %q", found["BUDGET_USER_DAY"], found["TELEGRAM_DM_POLICY"])
	}
	// Taken back, it is as configured.
	if err := (settingsView{w.app}).SetPolicy(t.Context(), "telegram", nil, byPanel); err != nil {
		t.Fatal(err)
	}
	if err := (settingsView{w.app}).Change(t.Context(), map[string]string{"BUDGET_USER_DAY": ""}, byPanel); err != nil {
		t.Fatal(err)
	}
	fourth := w.sim.NewUser("Fourth")
	fourth.Send("hello")
	w.hearsText(fourth, "code")
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'setting.change' AND via = 'panel'`); n != 5 {
		t.Errorf("%d audit rows for five changes", n)
	}
}

func TestAPresetLevelAppliesToTheNextApprovalAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, level := range []core.Trust{core.Vault, core.Sandboxed} {
		if err := (settingsView{w.app}).Change(t.Context(), map[string]string{"DM_TRUST": level.String()}, byPanel); err != nil {
			t.Fatal(err)
		}
		if got := w.app.bots.Preset("telegram", core.ScopeDM); got != level {
			t.Errorf("the preset is %s, want %s", got, level)
		}
	}
}

// A bot that was stopped in the panel stays so after a restart, until it is started.
func TestABotThatWasStoppedStaysStoppedAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.owner("Olga")
	if err := w.app.views().PanelBots().Stop("telegram"); err != nil {
		t.Fatal(err)
	}
	w.again()
	if b, ok := w.app.bots.Find("telegram"); !ok || !b.Off {
		t.Fatalf("after a restart it is %+v", b)
	}
	if s := w.app.hub.States()[0]; s.State != core.Stopped {
		t.Fatalf("after a restart it is %s", s.State)
	}
	ada := w.sim.NewUser("Ada")
	ada.Send("hello")
	w.until("it can be started", func() bool { // the connectors begin a moment after the listeners
		err := w.app.views().PanelBots().Start("telegram")
		if err != nil && core.KindOf(err) != core.Conflict {
			t.Fatal(err)
		}
		return err == nil
	})
	w.hearsText(ada, "code") // what was written meanwhile is answered
	w.again()
	w.until("it runs", func() bool { return w.app.hub.States()[0].State == core.Running })
}

// A token is taken from a file by its name, once the platform has taken it, and
// shown nowhere.
func TestATokenIsRotatedByTheNameOfItsFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.browser()
	dir := t.TempDir()
	write := func(name, token string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	page := b.page("/admin/settings/bots")
	const wrong = "4711:not-a-token-that-is-known"
	for file, says := range map[string]string{
		filepath.Join(dir, "missing"):                      "no such file",
		write("nonsense", "wxyz"):                          "does not look like a token",
		write("wrong", wrong):                              "does not take its token",
		filepath.Join(w.cfg.VaultPath, "Public", "tea.md"): "it lies in the vault",
	} {
		_, body := b.submit("/admin/settings/bots/telegram/token", page, url.Values{"token_file": {file}})
		if !strings.Contains(body, "flash bad") || !strings.Contains(body, "Token file: ") || !strings.Contains(body, says) {
			t.Errorf("%s: the page does not say %q\n%s", file, says, body)
		}
		if strings.Contains(body, "wxyz") || strings.Contains(body, wrong) {
			t.Error("the page shows what is in the file")
		}
	}
	good := write("good", w.sim.Token())
	if _, body := b.submit("/admin/settings/bots/telegram/token", page, url.Values{"token_file": {good}}); !strings.Contains(body, "goes on with the token in that file") || !strings.Contains(body, "in the file "+good) || strings.Contains(body, w.sim.Token()) {
		t.Fatal(body)
	}
	ada := w.sim.NewUser("Ada")
	ada.Send("hello")
	w.hearsText(ada, "code")
	w.again() // by the file's token
	bo := w.sim.NewUser("Bo")
	bo.Send("hello")
	w.hearsText(bo, "code")
	if err := os.Remove(good); err != nil {
		t.Fatal(err)
	}
	w.again() // without it the gateway starts, and says which bot it is
	w.until("it says so", func() bool {
		s := w.app.hub.States()[0]
		return s.State == core.FailedPhase && strings.Contains(s.Reason, "no such file")
	})
	if strings.Contains(w.log.String(), wrong) {
		t.Error("the log shows a token")
	}
}

func TestABackupOfThePanelIsWholeAndIsDownloaded(t *testing.T) {
	storetest.SQLiteOnly(t, "a server has no backup here")
	t.Parallel()
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = sim.Close() })
	dir := t.TempDir()
	w := newWorldOn(t, sim, dir, func(c *configs.Config) { c.BackupPath = filepath.Join(dir, "kept") })
	b := w.browser()
	page := b.page("/admin/settings/bots")
	b.submit("/admin/settings/backups", page, url.Values{})
	w.until("the backup", func() bool { return strings.Contains(b.page("/admin/settings/backups"), "The backup is made.") })
	list, err := w.app.views().Backups().Backups(context.Background())
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	file := b.page("/admin/settings/backups/" + list[0].Name)
	sum := sha256.Sum256([]byte(file))
	if list[0].SHA256 != hex.EncodeToString(sum[:]) || list[0].Size != int64(len(file)) || !strings.Contains(b.page("/admin/settings/backups"), list[0].SHA256) {
		t.Errorf("%+v, but what was downloaded has %d bytes and %x", list[0], len(file), sum)
	}
	entries, _ := contents(t, list[0].Path)
	if _, ok := entries[backup.DatabaseEntry]; !ok {
		t.Error("the database is not in it")
	}
	if st, err := os.Stat(list[0].Path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	for _, name := range []string{"../vault/Public/tea.md", "%2e%2e%2fvault", list[0].Name + ".sha256"} {
		resp, err := b.http.Get("http://" + w.cfg.Addr + "/admin/settings/backups/" + url.PathEscape(name))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Errorf("%s: status %d", name, resp.StatusCode)
		}
	}
	b.submit("/admin/settings/backups/"+list[0].Name+"/delete", page, url.Values{})
	if left, _ := filepath.Glob(filepath.Join(dir, "kept", "*")); len(left) != 0 {
		t.Errorf("after deleting: %q", left)
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE via = 'panel' AND action IN ('backup.make', 'backup.download', 'backup.delete')`); n != 3 {
		t.Errorf("%d audit rows", n)
	}
	// Where there is no room for them, the page says what to do.
	nowhere := directory.New(directory.Options{Path: "/proc/nowhere", Setting: "GATEHOUSE_BACKUP_PATH", DB: w.app.db, Jobs: w.app.jobs, Clock: w.clock})
	if err := nowhere.Backup(t.Context(), byPanel); core.KindOf(err) != core.Invalid || !strings.Contains(core.TextOf(err), "GATEHOUSE_BACKUP_PATH") {
		t.Errorf("%v", err)
	}
}

// The backups page is fetched again when this topic rings.
func TestTheEndOfAJobRefreshesTheBackupsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	rang := w.app.bus.Listen(ctx, core.TopicJobs)
	err := w.app.jobs.Start("work", func(context.Context, func(string)) (jobs.Result, error) { return jobs.Result{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	if topic := <-rang; topic != core.TopicJobs {
		t.Errorf("%q rings, want %q", topic, core.TopicJobs)
	}
}

var _ settings.Changes = settingsView{}
