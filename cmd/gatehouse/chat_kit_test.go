package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// A fake is what the tests' model is called, and what it says by default.
const (
	fakeModel = "openai/fake-1"
	fakeSays  = "Hello from the fake model."
)

// newModelWorld is a world whose model is a fake of a provider's wire.
func newModelWorld(t *testing.T, change func(*configs.Config)) (*world, *llmtest.Server) {
	t.Helper()
	model := llmtest.New(t, llmtest.Options{Key: modelKey})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL, c.OpenaiAPIKey = fakeModel, model.URL(), values.NewSecret(modelKey)
		if change != nil {
			change(c)
		}
	})
	return w, model
}

const modelKey = "sk-test-0123456789abcdef"

// until waits for what f sees; it is for states that nothing announces.
func (w *world) until(what string, f func() bool) {
	w.t.Helper()
	w.within(patience, what, f)
}

// within is until for what takes long.
func (w *world) within(d time.Duration, what string, f func() bool) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(d)
	for !f() {
		select {
		case <-tick.C:
		case <-end:
			w.t.Fatalf("never: %s\n%s", what, w.log.String())
		}
	}
}

// quiet waits until nothing is to be answered or sent.
func (w *world) quiet() {
	w.t.Helper()
	w.until("everything is fetched, answered and sent", func() bool {
		return w.sim.Bot().Pending() == 0 && w.count(`SELECT (SELECT count(*) FROM inbox WHERE state IN ('ready', 'limited')) +
			(SELECT count(*) FROM outbox WHERE state IN ('ready', 'sending')) + (SELECT count(*) FROM lane WHERE owner <> '' OR pending = 1)`) == 0
	})
}

// guest is a friend whose first message has been answered.
func (w *world) guest(name string) *telegramtest.User {
	w.t.Helper()
	u := w.friend(name)
	w.quiet()
	return u
}

// boss is the owner, with everything that comes of it said.
func (w *world) boss() *telegramtest.User {
	w.t.Helper()
	u := w.owner("Olga")
	w.quiet()
	return u
}

// said are the bot's messages of a chat after the message id.
func (w *world) said(in telegramtest.Conversation, after int) []string {
	var out []string
	for _, m := range w.sim.History(in) {
		if m.FromBot() && m.ID > after {
			out = append(out, m.Text)
		}
	}
	return out
}

// replies sends text to the bot and returns the first thing the bot says to it.
func (w *world) replies(u *telegramtest.User, text string) telegramtest.Message {
	w.t.Helper()
	return w.answers(u.DM(), u.Send(text).ID)
}

// answers waits for the bot's first message of a chat after a message.
func (w *world) answers(in telegramtest.Conversation, after int) telegramtest.Message {
	w.t.Helper()
	w.hears(in, func(m telegramtest.Message) bool { return m.ID > after })
	for _, m := range w.sim.History(in) {
		if m.FromBot() && m.ID > after {
			return m
		}
	}
	panic("unreachable: it was there")
}

// post writes to a group.
func (w *world) post(u *telegramtest.User, to telegramtest.Conversation, m telegramtest.Outgoing) telegramtest.Message {
	w.t.Helper()
	sent, err := u.Post(to, m)
	if err != nil {
		w.t.Fatal(err)
	}
	return sent
}

// group is an enabled group of the given people.
func (w *world) group(kind telegramtest.GroupKind, boss *telegramtest.User, members ...*telegramtest.User) *telegramtest.Group {
	w.t.Helper()
	g := w.sim.NewGroup(kind, "The Garden", boss, members...)
	m := w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: "/enable"})
	w.answers(g.Conversation(), m.ID)
	w.quiet()
	return g
}

// mention is text that addresses the bot.
func (w *world) mention(text string) string {
	return "@" + w.sim.Bot().Account().Username + " " + text
}

// A sample is one series of the registry.
type sample struct {
	name   string
	labels map[string]string
	value  float64 // of a histogram: how many were observed
}

func (w *world) samples() (out []sample) {
	w.t.Helper()
	families, err := w.app.reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			s := sample{f.GetName(), map[string]string{}, m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			out = append(out, s)
		}
	}
	return out
}

// metric is the sum of the series of that name which have the labels (pairs
// of name and value), -1 when there is none.
func (w *world) metric(name string, labels ...string) float64 {
	w.t.Helper()
	sum, found := 0.0, false
next:
	for _, s := range w.samples() {
		if s.name != name {
			continue
		}
		for i := 0; i+1 < len(labels); i += 2 {
			if s.labels[labels[i]] != labels[i+1] {
				continue next
			}
		}
		sum, found = sum+s.value, true
	}
	if !found {
		return -1
	}
	return sum
}

// logged waits for a line of the log with every one of the words.
func (w *world) logged(words ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("a line of the log with %q", words), func() bool {
	lines:
		for line := range strings.Lines(w.log.String()) {
			for _, word := range words {
				if !strings.Contains(line, word) {
					continue lines
				}
			}
			return true
		}
		return false
	})
}

// A browser is somebody signed in to the panel.
type browser struct {
	w    *world
	http *http.Client
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// browser signs in as admin.
func (w *world) browser() *browser {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	b := &browser{w, &http.Client{Jar: jar}}
	page := b.page("/admin/login")
	_, body := b.submit("/admin/login", page, url.Values{"user": {"admin"}, "name": {"admin"}, "password": {worldPassword}})
	if strings.Contains(body, `type="password"`) {
		w.t.Fatalf("could not sign in: %s", body)
	}
	return b
}

// page is what an address of the panel shows.
func (b *browser) page(path string) string {
	b.w.t.Helper()
	resp, err := b.http.Get("http://" + b.w.cfg.Addr + path)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		b.w.t.Fatalf("%s: %d %v\n%s", path, resp.StatusCode, err, body)
	}
	return string(body)
}

// submit sends a form with the token that page carries.
func (b *browser) submit(path, page string, form url.Values) (int, string) {
	b.w.t.Helper()
	if m := csrfField.FindStringSubmatch(page); m != nil {
		form.Set("csrf", m[1])
	}
	resp, err := b.http.PostForm("http://"+b.w.cfg.Addr+path, form)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// newModelWorldIn is newModelWorld for tests that run side by side.
func newModelWorldIn(t *testing.T) (*world, *llmtest.Server) {
	t.Helper()
	model := llmtest.New(t, llmtest.Options{})
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = sim.Close() })
	return newWorldOn(t, sim, t.TempDir(), func(c *configs.Config) { c.Model, c.OpenaiBaseURL = fakeModel, model.URL() }), model
}
