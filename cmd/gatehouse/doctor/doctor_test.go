package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/sandbox"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/web"
	"gatehouse/web/api/health"
)

const testToken = "99:topsecret-token"

// testNow is the second at which the tests' clocks stand.
var testNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// healthySubject has a made vault, a platform that answers and a free port.
func healthySubject(t *testing.T) Subject {
	t.Helper()
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", testNow.Format(http.TimeFormat))
	}))
	t.Cleanup(platform.Close)
	c := configs.Default()
	c.VaultPath = filepath.Join(t.TempDir(), "vault")
	if err := os.Mkdir(c.VaultPath, 0o700); err != nil {
		t.Fatal(err)
	}
	c.Addr = "127.0.0.1:0"
	c.TelegramToken = values.NewSecret(testToken)
	c.TelegramApiURL = platform.URL
	return Subject{
		Config: c,
		Clock:  coretest.NewClock(testNow),
		Test:   func(context.Context, configs.Bot) (string, error) { return "my_bot", nil },
		Model:  func(context.Context) (string, error) { return "openai/gpt", nil },
	}
}

// examine runs doctor both ways and returns the checks of one name.
func examine(t *testing.T, p Subject, name string) (found []Finding, healthy bool) {
	t.Helper()
	var text, out bytes.Buffer
	healthy = Run(t.Context(), &out, p, true)
	if Run(t.Context(), &text, p, false) != healthy {
		t.Error("text and JSON disagree about health")
	}
	if strings.Contains(text.String()+out.String(), "topsecret") {
		t.Errorf("a secret is in the report:\n%s", text.String())
	}
	var report struct {
		Healthy bool
		Checks  []Finding
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.Healthy != healthy {
		t.Fatalf("report: %v\n%s", err, out.String())
	}
	for _, c := range report.Checks {
		if !strings.Contains(text.String(), string(c.State)+"  ") || !strings.Contains(text.String(), c.Text) || !strings.Contains(text.String(), c.Fix) {
			t.Errorf("the text lacks %+v", c)
		}
		if c.State == Fail && c.Fix == "" {
			t.Errorf("no fix for %+v", c)
		}
		if c.Name == name {
			found = append(found, c)
		}
	}
	return found, healthy
}

func TestDoctorFindsNothingWrongWithAHealthyGateway(t *testing.T) {
	p := healthySubject(t)
	for _, name := range []string{"configuration", "vault", "database", "telegram", "model", "clock", "port"} {
		found, healthy := examine(t, p, name)
		if len(found) == 0 || !healthy {
			t.Fatalf("%s: %v, healthy %v", name, found, healthy)
		}
		for _, c := range found {
			if c.State != OK && !strings.Contains(c.Text, "file system") {
				t.Errorf("%+v", c)
			}
		}
	}
	entries, err := os.ReadDir(p.Config.VaultPath)
	if err != nil || len(entries) != 0 {
		t.Errorf("doctor left %v in the vault", entries)
	}
}

func TestDoctorReportsEachProblemOfTheConfigurationAndStops(t *testing.T) {
	p := Subject{Fault: configs.Problems{{Name: "GATEHOUSE_A", Fault: "bad", Example: "GATEHOUSE_A=1"}, {Name: "GATEHOUSE_B", Fault: "worse", Example: "GATEHOUSE_B=1"}}}
	found, healthy := examine(t, p, "configuration")
	if healthy || len(found) != 2 || found[1].Text != "GATEHOUSE_B: worse" || found[1].Fix != "for example GATEHOUSE_B=1" {
		t.Errorf("healthy %v, %+v", healthy, found)
	}
}

// sick examines a healthy patient after spoil and expects one check's state.
func sick(t *testing.T, name string, want State, text string, spoil func(*Subject)) (found Finding) {
	t.Helper()
	p := healthySubject(t)
	spoil(&p)
	all, healthy := examine(t, p, name)
	for _, c := range all {
		if c.State == want && strings.Contains(c.Text, text) {
			if healthy == (want == Fail) {
				t.Errorf("%s %s: healthy is %v", want, name, healthy)
			}
			return c
		}
	}
	t.Errorf("no %s of %s with %q in %+v", want, name, text, all)
	return Finding{}
}

func TestDoctorOnTheVault(t *testing.T) {
	t.Parallel()
	sick(t, "vault", OK, "will be made", func(p *Subject) { p.Config.VaultPath += "/not/yet" })
	sick(t, "vault", Warn, "other users", func(p *Subject) { _ = os.Chmod(p.Config.VaultPath, 0o755) })
	sick(t, "vault", Fail, "is a file", func(p *Subject) {
		p.Config.VaultPath += "/file"
		_ = os.WriteFile(p.Config.VaultPath, nil, 0o600)
	})
	for _, folder := range []string{"Dropbox", "OneDrive - Work", "Dropbox (Personal)", "Nextcloud"} {
		sick(t, "vault", Warn, "kept in step by", func(p *Subject) {
			p.Config.VaultPath = filepath.Join(p.Config.VaultPath, folder, "notes")
			_ = os.MkdirAll(p.Config.VaultPath, 0o700)
		})
	}
	sick(t, "vault", Warn, "Syncthing", func(p *Subject) { _ = os.Mkdir(filepath.Join(p.Config.VaultPath, ".stfolder"), 0o700) })
	if os.Getuid() != 0 {
		sick(t, "vault", Fail, "cannot be written", func(p *Subject) { _ = os.Chmod(p.Config.VaultPath, 0o500) })
	}
	if by := synced("/home/me/dropboxes/vault"); by != "" {
		t.Errorf("a folder that only begins like it counts as %s", by)
	}
}

func TestDoctorOnTheDatabase(t *testing.T) {
	t.Parallel()
	write := func(p *Subject, text string) {
		p.Config.DatabaseURL = filepath.Join(p.Config.VaultPath, "x.db")
		_ = os.WriteFile(p.Config.DatabaseURL, []byte(text), 0o600)
	}
	sick(t, "database", OK, "will be made", func(p *Subject) { write(p, "") })
	sick(t, "database", Fail, "cannot be read", func(p *Subject) { write(p, strings.Repeat("not a database ", 100)) })
	db := storetest.Open(t, coretest.NewClock(testNow))
	now := store.Newest()
	knows := func(version int64) func(*Subject) {
		return func(p *Subject) { p.Config.DatabaseURL, p.Newest = db.Path(), version }
	}
	sick(t, "database", OK, fmt.Sprintf("version %d", now), knows(now))
	sick(t, "database", OK, fmt.Sprintf("brings it to version %d", now+1), knows(now+1))
	sick(t, "database", Fail, "newer than this program", knows(now-1))
	takes := func(bytes int) func(*Subject) {
		return func(p *Subject) {
			knows(now)(p)
			err := db.Tx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(t.Context(), `INSERT INTO attachment_use (user_id, bytes) VALUES (7, $1) ON CONFLICT (user_id) DO UPDATE SET bytes = $1`, bytes)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	sick(t, "attachments", OK, "attachments take 50 MB of 19.5 GB; of one person 50 MB of 1.95 GB at most", takes(50<<20))
	sick(t, "attachments", Warn, "of one person 1.9 GB of 1.95 GB", takes(1946<<20))
	old := func(version int, alter string) func(p *Subject) {
		return func(p *Subject) {
			p.Config.DatabaseURL = filepath.Join(p.Config.VaultPath, "old.db")
			db := storetest.Original(t, p.Config.DatabaseURL, version)
			if _, err := db.Exec(alter); err != nil {
				t.Fatal(err)
			}
			_ = db.Close()
		}
	}
	sick(t, "database", OK, "of the original system, version 9; the next start takes it over", old(9, ""))
	sick(t, "database", OK, "of the original system, version 12; the next start takes it over", old(12, ""))
	sick(t, "database", Fail, "sessions.workspace_id", old(12, `ALTER TABLE sessions ADD COLUMN workspace_id TEXT`))
}

func TestDoctorOnPlatformAndModel(t *testing.T) {
	sick(t, "bots", Warn, "no bot", func(p *Subject) { p.Config.TelegramToken = values.Secret{} })
	sick(t, "telegram", Fail, "refuses the token", func(p *Subject) {
		p.Test = func(context.Context, configs.Bot) (string, error) {
			return "", core.Errorf(core.Denied, "Unauthorized")
		}
	})
	sick(t, "telegram", Fail, "[secret]", func(p *Subject) {
		p.Test = func(context.Context, configs.Bot) (string, error) {
			return "", errors.New("Post \"https://h/bot" + testToken + "/getMe\": no route")
		}
	})
	sick(t, "model", Fail, "does not answer: no credit", func(p *Subject) {
		p.Model = func(context.Context) (string, error) { return "", core.Errorf(core.Busy, "no credit") }
	})
	sick(t, "model", OK, "no language model", func(p *Subject) {
		p.Model = func(context.Context) (string, error) { return "local/quote", nil }
	})
}

func TestDoctorOnClockAndPorts(t *testing.T) {
	late := func(d time.Duration) func(*Subject) {
		return func(p *Subject) { p.Clock = coretest.NewClock(testNow.Add(d)) }
	}
	sick(t, "clock", OK, "agrees", late(5*time.Second))
	sick(t, "clock", Warn, "30s away", late(-30*time.Second))
	sick(t, "clock", Fail, "1h0m0s away", late(time.Hour))
	sick(t, "clock", Warn, "could not be compared", func(p *Subject) { p.Config.TelegramApiURL = "http://127.0.0.1:1" })

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := func(p *Subject) { p.Config.MetricsAddr = l.Addr().String() }
	sick(t, "port", Fail, "cannot be taken", taken)
	sick(t, "port", OK, "a gateway serves this vault", func(p *Subject) {
		taken(p)
		p.Serving = func(context.Context) bool { return true }
	})
}

// Root, who does not find the socket of the service's user, is not told to stop the service.
func TestDoctorNamesAGatewayOfAnotherUserOnThePort(t *testing.T) {
	gateway := httptest.NewServer(web.Serve(slog.New(slog.DiscardHandler), web.ShowEither, health.Live))
	defer gateway.Close()
	at := func(s *httptest.Server) func(*Subject) {
		return func(p *Subject) { p.Config.Addr = s.Listener.Addr().String() }
	}
	if f := sick(t, "port", Fail, "a gateway answers on", at(gateway)); !strings.Contains(f.Fix, "run doctor as its user") {
		t.Errorf("the fix is %q", f.Fix)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if f := sick(t, "port", Fail, "cannot be taken", at(other)); !strings.Contains(f.Fix, "stop the program that holds it") {
		t.Errorf("the fix is %q", f.Fix)
	}
}

func TestDoctorWarnsOfOpenDoors(t *testing.T) {
	sick(t, "configuration", Warn, "password is short", func(p *Subject) { p.Config.AdminPassword = values.NewSecret("top-secret") })
	sick(t, "telegram", Warn, "anyone who finds", func(p *Subject) { p.Config.TelegramDMPolicy = "open" })
	sick(t, "telegram", Warn, "allowlist is empty", func(p *Subject) { p.Config.TelegramDMPolicy = "allowlist" })
	sick(t, "configuration", Warn, "behind a proxy", func(p *Subject) {
		p.Config.LocalhostAccess = "chat"
		_ = p.Config.TrustedProxies.Decode("127.0.0.1")
	})
	if !inTheClear("http://192.0.2.1") || inTheClear("http://127.0.0.1") || inTheClear("https://192.0.2.1") {
		t.Error("doctor misjudges which addresses are in the clear")
	}
}

// Each bot is asked about, those of the file too, and told by its name and line.
func TestDoctorChecksEachBot(t *testing.T) {
	withFile := func(text string) func(*Subject) {
		return func(p *Subject) {
			p.Config.BotsFile = filepath.Join(t.TempDir(), "bots.yaml")
			_ = os.WriteFile(p.Config.BotsFile, []byte("bots:\n- {name: support, platform: telegram, token: '88:topsecret-other', dm_policy: open"+text+"}\n"), 0o600)
			p.Test = func(_ context.Context, b configs.Bot) (string, error) {
				if b.Name == "support" {
					return "", core.Errorf(core.Denied, "Unauthorized 88:topsecret-other")
				}
				return "my_bot", nil
			}
		}
	}
	sick(t, "support", Fail, "refuses the token", withFile(""))
	sick(t, "support", Fail, "refuses the token", withFile(", api_url: 'http://192.0.2.1'"))
	p := healthySubject(t)
	withFile(", api_url: 'http://192.0.2.1'")(&p)
	found, _ := examine(t, p, "support")
	if len(found) != 3 || !strings.Contains(found[0].Fix, "bots.yaml:2") || !strings.Contains(found[1].Fix, "dm_policy at ") || !strings.Contains(found[2].Fix, "https") {
		t.Errorf("%+v", found)
	}
	if found, _ := examine(t, p, "telegram"); len(found) != 1 || found[0].State != OK {
		t.Errorf("the other bot: %+v", found)
	}
}

func TestDoctorWarnsOfFilesWithTokensThatOthersCanRead(t *testing.T) {
	p := healthySubject(t)
	dir, err := os.MkdirTemp("/tmp", "gh") // t.TempDir may stand in a folder that nobody else enters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	token := filepath.Join(dir, "token")
	p.Config.BotsFile = filepath.Join(dir, "bots.yaml")
	for _, err := range []error{os.WriteFile(token, []byte("88:topsecret-other"), 0o600), os.WriteFile(p.Config.BotsFile, []byte("bots: [{name: support, platform: telegram, token_file: token}]"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	modes := func(folder, file os.FileMode) int {
		t.Helper()
		if err := errors.Join(os.Chmod(dir, folder), os.Chmod(token, file), os.Chmod(p.Config.BotsFile, file)); err != nil {
			t.Fatal(err)
		}
		found, healthy := examine(t, p, "files")
		for _, c := range found {
			if !healthy || c.State != Warn || !strings.Contains(c.Fix, "chmod 600 '"+dir) {
				t.Errorf("%+v", c)
			}
		}
		return len(found)
	}
	if a, b, c := modes(0o755, 0o600), modes(0o755, 0o644), modes(0o700, 0o644); a != 0 || b != 2 || c != 0 {
		t.Errorf("warnings: %d for private files, %d for open ones, %d in a private folder", a, b, c)
	}
}

func TestDoctorReportsWhatIsolatesCommands(t *testing.T) {
	works := func(p *Subject) {
		p.Sandbox = func() []sandbox.Backend {
			return []sandbox.Backend{{Name: "bubblewrap", Works: true, Text: "isolates commands"}}
		}
	}
	sick(t, "sandbox", OK, "bubblewrap: isolates", works)
	sick(t, "sandbox", Warn, "no shell below full trust", func(p *Subject) {
		p.Sandbox = func() []sandbox.Backend {
			return []sandbox.Backend{{Name: "bubblewrap", Text: "is not installed", Fix: "install bubblewrap"}}
		}
	})
	for _, text := range []string{"the kernel holds memory", "limits are checked ten times a second"} {
		sick(t, "sandbox", OK, "limits: "+text, func(p *Subject) {
			works(p)
			p.Limits = func(context.Context) string { return text }
		})
	}
	sick(t, "sandbox", OK, "switched off", func(p *Subject) { works(p); p.Config.Sandbox = "none" })
}

// Init writes a file that no command reads unless it is named.
func TestDoctorNamesTheFileOfSettingsThatWasNotRead(t *testing.T) {
	const file = "/home/me/.config/gatehouse/gatehouse.env"
	found := checkConfiguration(t.Context(), Subject{Config: configs.Default(), Unread: file})
	if len(found) != 1 || found[0].State != Warn || !strings.Contains(found[0].Fix, "--env-file "+file) {
		t.Errorf("%+v", found)
	}
	c := configs.Default()
	found = checkConfiguration(t.Context(), Subject{Config: c})
	if len(found) != 1 || found[0].State != OK {
		t.Errorf("without one: %+v", found)
	}
}
