package discord

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.bin"), make([]byte, maxSend), 0o600); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	for want, refuse := range map[string]func(w http.ResponseWriter, r *http.Request){
		"does not take": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "<html>Request Entity Too Large</html>", http.StatusRequestEntityTooLarge)
		},
		"too slow": func(http.ResponseWriter, *http.Request) { <-end }, // reads nothing of it
	} {
		t.Run(want, func(t *testing.T) {
			texts := make(chan string, 10)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
					refuse(w, r)
					return
				}
				body, _ := io.ReadAll(r.Body)
				texts <- string(body)
				_, _ = w.Write([]byte(`{"id":"1"}`))
			}))
			t.Cleanup(srv.Close)
			s := platform(t, discordtest.Options{FloodOff: true})
			b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
			b.api = rest.New(rest.Options{Token: b.o.Token, Base: srv.URL, Transport: b.line, Timeout: time.Minute, UploadTimeout: func(int) time.Duration { return 300 * time.Millisecond }})
			d := b.Send(t.Context(), core.Outgoing{Address: core.Address{Bot: "bot", Chat: "1"}, Seq: 7, Part: core.Part{File: &core.File{Path: "a.bin", Name: "a.bin"}}})
			if d.Outcome != core.Sent || d.MessageID != "1" {
				t.Errorf("%+v", d)
			}
			if text := <-texts; !strings.Contains(text, "a.bin could not be sent") || !strings.Contains(text, want) {
				t.Errorf("%q", text)
			}
			if want == "too slow" {
				close(end)
			}
		})
	}
}
