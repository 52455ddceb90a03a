package discord

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/discord/rest"
	"gatehouse/core"
)

func TestAFileIsSentWithItsTextOrReplacedByTheReason(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	ada.Send("hello")
	dir := t.TempDir()
	for name, data := range map[string]string{"notes.md": "# Notes", "large": "", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "large"), maxSend+1); err != nil {
		t.Fatal(err)
	}
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
	send := func(name string) (core.Delivery, discordtest.Message) {
		d := b.Send(t.Context(), core.Outgoing{Address: core.Address{Bot: "bot", Chat: ada.DM().String()}, Seq: 7,
			Part: core.Part{Text: "See *this*", File: &core.File{Path: name, Name: "folder/" + name}}})
		all := s.History(ada.DM())
		return d, all[len(all)-1]
	}
	d, m := send("notes.md")
	if d.Outcome != core.Sent || d.MessageID != m.ID.String() || m.Text != `See \*this\*` || len(m.Attachments) != 1 || m.Attachments[0].Filename != "notes.md" || m.Attachments[0].Size != 7 {
		t.Fatalf("%+v, shown as %+v", d, m)
	}
	if again, m := send("notes.md"); again.MessageID != d.MessageID || len(s.History(ada.DM())) != 2 {
		t.Errorf("sent twice under one nonce: %+v, %+v", again, m)
	}
	for name, why := range map[string]string{"gone": "it is gone", "empty": "it is empty", "large": "it is larger than 10 MB"} {
		if d, m := send(name); d.Outcome != core.Sent || !strings.Contains(m.Text, "could not be sent: "+why) || len(m.Attachments) != 0 {
			t.Errorf("%s: %+v, shown as %+v", name, d, m)
		}
	}
}

// What a proxy does not take, or the line not in time, would not arrive the next time either, and
// must not hold its chat.
func TestAFileThatDoesNotGetThroughIsReplacedByTheReason(t *testing.T) {
	d, texts := sendOver(t, 0, nil, http.StatusRequestEntityTooLarge)
	if d.Outcome != core.Sent || d.MessageID != "1" || len(texts) != 1 || !strings.Contains(texts[0], "a.bin could not be sent") || !strings.Contains(texts[0], "does not take") {
		t.Errorf("%+v, texts %q", d, texts)
	}
	d, texts = sendOver(t, 0, connectorstest.Stalled, http.StatusOK)
	if d.Outcome != core.Sent || d.MessageID != "1" || len(texts) != 1 || !strings.Contains(texts[0], "a.bin could not be sent") || !strings.Contains(texts[0], "too slow") {
		t.Errorf("%+v, texts %q", d, texts)
	}
}

// A file is as good after an outage as before it.
func TestAFileWaitsWhileThereIsNoConnection(t *testing.T) {
	for name, first := range map[string]func(context.Context, string, string) (net.Conn, error){"no answer": connectorstest.NoAnswer, "none in time": connectorstest.NoConnection} {
		if d, texts := sendOver(t, 50, first, http.StatusOK); d.Outcome != core.NotSent || len(texts) > 0 {
			t.Errorf("%s: %+v, texts %q", name, d, texts)
		}
	}
}

// A file that the platform fails on whenever it gets it must not hold its chat.
func TestAFileThatFailsAgainAndAgainIsReplacedByTheReason(t *testing.T) {
	if d, texts := sendOver(t, connectors.FileTries-1, nil, http.StatusServiceUnavailable); d.Outcome != core.NotSent || len(texts) > 0 {
		t.Errorf("%+v, texts %q", d, texts)
	}
	d, texts := sendOver(t, connectors.FileTries, nil, http.StatusServiceUnavailable)
	if d.Outcome != core.Sent || len(texts) != 1 || !strings.Contains(texts[0], "a.bin could not be sent: it failed again and again") {
		t.Errorf("%+v, texts %q", d, texts)
	}
}

// sendOver sends a file that has failed before to a server that answers it with a status, over a first connection that
// first makes unless it is nil, and returns the messages without a file that arrived.
func sendOver(t *testing.T, failed int, first func(context.Context, string, string) (net.Conn, error), status int) (core.Delivery, []string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.bin"), make([]byte, 100<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	texts := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
			w.WriteHeader(status)
		} else {
			texts <- string(body)
		}
		_, _ = w.Write([]byte(`{"id":"1"}`))
	}))
	defer srv.Close()
	s := platform(t, discordtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
	line := connectors.NewTransport(4)
	defer line.CloseIdleConnections()
	if first != nil {
		connectorstest.Dial(line, first)
	}
	limit := time.Minute
	if first != nil {
		limit = 2 * time.Second // it is waited for
	}
	b.api = rest.New(rest.Options{Token: b.o.Token, Base: srv.URL, Transport: line, Timeout: time.Minute, UploadTimeout: func(int) time.Duration { return limit }})
	for range failed {
		b.failing.Enough(7)
	}
	d := b.Send(t.Context(), core.Outgoing{Address: core.Address{Bot: "bot", Chat: "1"}, Seq: 7, Part: core.Part{File: &core.File{Path: "a.bin", Name: "a.bin"}}})
	close(texts)
	var got []string
	for text := range texts {
		got = append(got, text)
	}
	return d, got
}
