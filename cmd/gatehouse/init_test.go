package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/anthropictest"
	"gatehouse/core/llm/llmtest"
)

// A beginner is a folder without any settings but the servers' addresses.
type beginner struct {
	*home
	telegram *telegramtest.Server
	discord  *discordtest.Server
	file     string
}

func newBeginner(t *testing.T) *beginner {
	t.Helper()
	b := &beginner{
		home:     newHome(t, nil),
		telegram: telegramtest.New(telegramtest.Options{FloodOff: true, Bots: []telegramtest.BotAccount{{Privacy: true}}}),
		discord:  discordtest.New(discordtest.Options{FloodOff: true}),
	}
	t.Cleanup(func() { _, _ = b.telegram.Close(), b.discord.Close() })
	delete(b.env, "GATEHOUSE_ADMIN_PASSWORD")
	b.env["GATEHOUSE_TELEGRAM_API_URL"], b.env["GATEHOUSE_DISCORD_API_URL"] = b.telegram.URL(), b.discord.URL()
	b.file = filepath.Join(b.dir, ".config", "gatehouse", "gatehouse.env")
	return b
}

// begins runs init with lines as its input.
func (b *beginner) begins(lines []string, args ...string) (code int, out string) {
	b.t.Helper()
	p := b.start(func(c *exec.Cmd) { c.Stdin = strings.NewReader(strings.Join(lines, "\n")) }, append([]string{"init"}, args...)...)
	code = p.end()
	return code, p.out.String() + p.err.String()
}

const goodPassword = "topsecret zebra lamp river"

var claimCode2 = regexp.MustCompile(`/claim ([A-Z0-9-]+)`)

// Five answers, each checked with its server; then serve begins with the file
// and nothing else, the owner claims, and the model answers.
func TestInitChecksEachAnswerAndServeBeginsWithWhatItWrote(t *testing.T) {
	b := newBeginner(t)
	model := llmtest.New(t, llmtest.Options{})
	code, out := b.begins([]string{b.telegram.Token(), b.discord.Token(), model.URL(), goodPassword, "y"})
	if code != exitClean {
		t.Fatalf("exit %d: %s", code, out)
	}
	for _, want := range []string{"It is @gatehouse_bot", "/setprivacy", "It is gatehouse", "Message Content Intent", "client_id=", "The address is " + model.URL() + ".", "openai/fake-1 answers", b.file, "open the panel: http://127.0.0.1:", "serve --env-file " + b.file} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	for _, secret := range []string{b.telegram.Token(), b.discord.Token(), goodPassword} {
		if strings.Contains(out, secret) {
			t.Errorf("a secret is repeated:\n%s", out)
		}
	}
	if reqs := model.Requests(); len(reqs) == 0 {
		t.Error("the model was not asked")
	}
	if info, err := os.Stat(b.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	for name := range b.env {
		if strings.HasPrefix(name, "GATEHOUSE_") {
			delete(b.env, name)
		}
	}
	b.env["GATEHOUSE_LOG_FORMAT"] = "text"
	p := b.start(nil, "serve", "--env-file", b.file)
	p.says("msg=serving")
	ada := b.telegram.NewUser("Ada")
	ada.Send("/claim " + claimCode2.FindStringSubmatch(out)[1])
	claimed := hear(t, b.telegram, ada.DM(), 0, "own")
	ada.Send("hello")
	hear(t, b.telegram, ada.DM(), claimed.ID, "Hello from the fake model.")
	if code, out, errs := b.run("--env-file", b.file, "pairing", "list"); code != exitClean || !strings.Contains(out, "No requests") {
		t.Errorf("another command with the same file: %d %s%s", code, out, errs)
	}
	if code, out, _ := b.run("doctor", "--env-file", b.file); code != exitClean || !strings.Contains(out, "belongs to @gatehouse_bot") || !strings.Contains(out, "discord") {
		t.Errorf("doctor: %d\n%s", code, out)
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.end(); code != exitClean {
		t.Errorf("serve ends with %d", code)
	}
}

func TestInitTakesAKeyAndHasTheModelSayOneToken(t *testing.T) {
	b := newBeginner(t)
	server := anthropictest.New(t, anthropictest.Options{Key: "sk-ant-topsecret"})
	b.env["GATEHOUSE_ANTHROPIC_BASE_URL"] = server.URL()
	if code, out := b.begins([]string{"", "", "sk-ant-wrong-topsecret", "", ""}); code == exitClean || strings.Contains(out, "topsecret") || exists(b.file) {
		t.Errorf("a key that is refused: exit %d, written: %v\n%s", code, exists(b.file), out)
	}
	code, out := b.begins([]string{"", "", "sk-ant-topsecret", "", ""})
	if code != exitClean || !strings.Contains(out, "anthropic/claude-fake-5 answers") {
		t.Fatalf("exit %d\n%s", code, out)
	}
	reqs := server.Requests()
	if last := reqs[len(reqs)-1]; last.Message.MaxTokens == nil || *last.Message.MaxTokens != 1 {
		t.Errorf("it did not ask for one token: %s", last.Body)
	}
	if text, _ := os.ReadFile(b.file); !strings.Contains(string(text), "GATEHOUSE_ANTHROPIC_API_KEY=sk-ant-topsecret\n") || !strings.Contains(string(text), "GATEHOUSE_ANTHROPIC_BASE_URL="+server.URL()) {
		t.Errorf("written:\n%s", text)
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// A script notices: the first answer that is wrong ends it, and nothing is written.
func TestInitWritesNothingAfterAWrongAnswer(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	revoked := b.discord.Token()
	b.discord.Bot().Revoke()
	for what, lines := range map[string][]string{
		"no Telegram token":   {"topsecret"},
		"an unknown token":    {"7000000009:" + strings.Repeat("s", 35)},
		"no Discord token":    {"", "topsecret"},
		"a revoked token":     {"", revoked},
		"a server that is no": {"", "", "http://me:topsecret@127.0.0.1:1/v1"},
		"a short password":    {"", "", "", "topsecret"},
		"an easy password":    {"", "", "", "password123456password"},
	} {
		code, out := b.begins(lines)
		if code == exitClean || exists(b.file) || strings.Contains(out, "topsecret") || strings.Contains(out, strings.Repeat("s", 35)) || strings.Contains(out, revoked) {
			t.Errorf("%s: exit %d, written: %v\n%s", what, code, exists(b.file), out)
		}
		if strings.Contains(out, "restart") {
			t.Errorf("%s: the advice is for a gateway that runs:\n%s", what, out)
		}
		if what == "a revoked token" && !strings.Contains(out, "press Reset Token and copy the new one") || what == "an unknown token" && !strings.Contains(out, "Copy it again from @BotFather") {
			t.Errorf("%s: no advice:\n%s", what, out)
		}
	}
}

func TestInitSkipsWhatIsNotAnsweredAndTakesFlagsAndSecretFiles(t *testing.T) {
	b := newBeginner(t)
	if code, out := b.begins(nil); code != exitClean || strings.Count(out, "skipped") != 4 || !strings.Contains(out, "There is no bot yet") || strings.Contains(out, "/claim ") {
		t.Fatalf("no answers at all: exit %d\n%s", code, out)
	}
	_ = os.Remove(b.file)
	if code, out, _ := b.run("init"); code != exitClean || strings.Count(out, "skipped") != 4 { // its input is /dev/null
		t.Fatalf("no input at all: exit %d\n%s", code, out)
	}
	if code, out := b.begins(nil); code != exitFailure || !strings.Contains(out, "--force") {
		t.Errorf("a file that is there: exit %d\n%s", code, out)
	}
	secret := func(name, text string) string {
		path := filepath.Join(b.dir, name)
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token, password := secret("token", b.telegram.Token()), secret("password", goodPassword)
	model := llmtest.New(t, llmtest.Options{Key: "topsecret-key"})
	other := filepath.Join(b.dir, "my settings.env")
	code, out := b.begins(nil, "--env-file", other, "--vault", filepath.Join(b.dir, "notes"), "--telegram-token-file", token, "--admin-password-file", password,
		"--model-url", model.URL(), "--model-key-file", secret("key", "topsecret-key"), "--model", "openai/fake-1", "--claim")
	if code != exitClean || !strings.Contains(out, "/claim ") || !strings.Contains(out, "'"+other+"'") {
		t.Fatalf("exit %d\n%s", code, out)
	}
	text, err := os.ReadFile(other)
	for _, want := range []string{"TELEGRAM_TOKEN_FILE=" + token, "ADMIN_PASSWORD_FILE=" + password, "OPENAI_BASE_URL=" + model.URL(), "OPENAI_API_KEY_FILE=", "MODEL=openai/fake-1", "VAULT_PATH=" + filepath.Join(b.dir, "notes")} {
		if err != nil || !strings.Contains(string(text), "GATEHOUSE_"+want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), b.telegram.Token()) || strings.Contains(string(text), "topsecret") {
		t.Error("a secret that has a file of its own is written a second time")
	}
	if code, out := b.begins(nil, "--env-file", other, "--force"); code != exitClean {
		t.Errorf("--force: exit %d\n%s", code, out)
	}
	if text, _ := os.ReadFile(other); strings.Contains(string(text), "OPENAI_BASE_URL") {
		t.Errorf("--force left the old settings:\n%s", text)
	}
}

func TestAnEnvFileThatOthersCanReadOrThatHoldsOtherNamesIsRefused(t *testing.T) {
	h := newHome(t, nil)
	file := filepath.Join(h.dir, "x.env")
	if err := os.WriteFile(file, []byte("GATEHOUSE_LOG_LEVEL=debug\nLD_PRELOAD=topsecret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := h.run("serve", "--env-file", file)
	if code != exitUsage || !strings.Contains(errs, file+":2") || !strings.Contains(errs, "chmod 600") || strings.Contains(out+errs, "topsecret") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
