package telegram

import (
	"bytes"
	"context"
	"image"
	"image/png"
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
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

// files are a folder to send from.
func files(t *testing.T, all map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range all {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func drawn(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAFileIsSentAsPictureOrDocumentWithItsText(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	ada.Send("hello")
	all := map[string][]byte{"chart.png": drawn(t, 40, 30), "long.png": drawn(t, 9000, 10), "fake.png": []byte("\x89PNG\r\n\x1a\nno picture"), "notes.md": []byte("# Notes")}
	dir := files(t, all)
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
	for name, kind := range map[string]string{"chart.png": "photo", "long.png": "document", "fake.png": "document", "notes.md": "document"} {
		o := out(chatOf(ada.ID()), "See "+name)
		o.Spans = []core.Span{{Style: core.StyleBold, Offset: 0, Length: 3}}
		o.File = &core.File{Path: name, Name: "folder/" + name}
		d := b.Send(t.Context(), o)
		if d.Outcome != core.Sent || d.MessageID == "" {
			t.Fatalf("%s: %+v", name, d)
		}
		shown := s.History(ada.DM())
		m := shown[len(shown)-1]
		if m.Text != "See "+name || len(m.Entities) != 1 || !strings.HasPrefix(m.File, kind) {
			t.Errorf("%s is shown as %+v", name, m)
		}
		if got := s.Sent(kind, name); !bytes.Equal(got, all[name]) {
			t.Errorf("%s: %d bytes arrived of %d", name, len(got), len(all[name]))
		}
	}
}

func TestAFileThatCannotBeSentIsReplacedByTheReason(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	ada.Send("hello")
	dir := files(t, map[string][]byte{"empty": nil})
	if err := os.Truncate(filepath.Join(dir, "empty"), 0); err != nil {
		t.Fatal(err)
	}
	large, err := os.Create(filepath.Join(dir, "large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := large.Truncate(maxSend + 1); err != nil {
		t.Fatal(err)
	}
	large.Close()
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
	for name, why := range map[string]string{"gone": "it is gone", "empty": "it is empty", "large": "larger than 50 MB", ".": "not a file", "../etc": "it is gone"} {
		o := out(chatOf(ada.ID()), "")
		o.File = &core.File{Path: name, Name: name + ".txt"}
		if d := b.Send(t.Context(), o); d.Outcome != core.Sent {
			t.Fatalf("%s: %+v", name, d)
		}
		all := s.History(ada.DM())
		if m := all[len(all)-1]; !strings.Contains(m.Text, "could not be sent") || !strings.Contains(m.Text, why) {
			t.Errorf("%s: %q", name, m.Text)
		}
	}
}

// What a proxy does not take, or the line not in time, would not arrive the next time either, and
// must not hold its chat.
func TestAFileThatDoesNotGetThroughIsReplacedByTheReason(t *testing.T) {
	dir := files(t, map[string][]byte{"a.txt": make([]byte, 100<<10)})
	t.Run("a proxy refuses its size", func(t *testing.T) {
		s := platform(t, telegramtest.Options{FloodOff: true})
		ada := s.NewUser("Ada")
		ada.Send("hello")
		b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
		inject(t, s, telegramtest.Fault{Kind: telegramtest.Broken, Method: "sendDocument", Status: http.StatusRequestEntityTooLarge, Count: 1})
		o := out(chatOf(ada.ID()), "")
		o.File = &core.File{Path: "a.txt", Name: "a.txt"}
		d := b.Send(t.Context(), o)
		all := s.History(ada.DM())
		if m := all[len(all)-1]; d.Outcome != core.Sent || !strings.Contains(m.Text, "a.txt could not be sent") {
			t.Errorf("%+v, shown %+v", d, m)
		}
	})
	t.Run("the line is too slow", func(t *testing.T) {
		d, texts := sendOver(t, 0, dir, connectorstest.Stalled)
		if d.Outcome != core.Sent || d.MessageID != "1" || len(texts) != 1 || !strings.Contains(texts[0], "too slow") {
			t.Errorf("%+v, texts %q", d, texts)
		}
	})
	if short, long := uploadTimeout(1), uploadTimeout(maxSend); short < time.Minute || long < maxSend/(128<<10)*time.Second {
		t.Errorf("%v for a byte, %v for the largest", short, long)
	}
}

// A file is as good after an outage as before it.
func TestAFileWaitsWhileThereIsNoConnection(t *testing.T) {
	dir := files(t, map[string][]byte{"a.txt": make([]byte, 100<<10)})
	for name, first := range map[string]func(context.Context, string, string) (net.Conn, error){"no answer": connectorstest.NoAnswer, "none in time": connectorstest.NoConnection} {
		if d, texts := sendOver(t, 50, dir, first); d.Outcome != core.NotSent || len(texts) > 0 {
			t.Errorf("%s: %+v, texts %q", name, d, texts)
		}
	}
}

// A file that the platform fails on whenever it gets it must not hold its chat.
func TestAFileThatFailsAgainAndAgainIsReplacedByTheReason(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	ada.Send("hello")
	dir := files(t, map[string][]byte{"a.txt": []byte("a")})
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
	row := int64(0)
	for _, kind := range []telegramtest.Fault{
		{Kind: telegramtest.Broken, Method: "sendDocument", Status: http.StatusServiceUnavailable, Count: 1},
		{Kind: telegramtest.Broken, Method: "sendDocument", Status: http.StatusInternalServerError, Count: 1},
	} {
		for tries, want := range map[int]core.Outcome{connectors.FileTries - 1: core.NotSent, connectors.FileTries: core.Sent} {
			inject(t, s, kind)
			o := out(chatOf(ada.ID()), "")
			row++
			o.Seq = row
			for range tries {
				b.failing.Enough(o.Seq)
			}
			o.File = &core.File{Path: "a.txt", Name: "a.txt"}
			d := b.Send(t.Context(), o)
			all := s.History(ada.DM())
			if m := all[len(all)-1]; d.Outcome != want || want == core.Sent && !strings.Contains(m.Text, "a.txt could not be sent: it failed again and again") {
				t.Errorf("after %d tries %+v, shown %+v", tries, d, m)
			}
		}
	}
}

// sendOver sends a.txt, which has failed before, over a first connection that first makes, and returns the texts that
// arrived.
func sendOver(t *testing.T, failed int, dir string, first func(context.Context, string, string) (net.Conn, error)) (core.Delivery, []string) {
	t.Helper()
	texts := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/sendMessage") {
			texts <- r.FormValue("text")
		}
		_, _ = w.Write([]byte(`{"ok":true,"result":{"message_id":1}}`))
	}))
	defer srv.Close()
	b, err := New(Options{Name: "bot", Token: "42:secret", APIURL: srv.URL, Cursors: noCursor{}, Files: os.DirFS(dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	connectorstest.Dial(b.sends.t.Load(), first)
	b.uploadTimeout = func(int64) time.Duration { return 2 * time.Second }
	o := out(chatOf(7), "")
	for range failed {
		b.failing.Enough(o.Seq)
	}
	o.File = &core.File{Path: "a.txt", Name: "a.txt"}
	d := b.Send(t.Context(), o)
	close(texts)
	var got []string
	for text := range texts {
		got = append(got, text)
	}
	return d, got
}

// A caption has a limit of its own; a text above it must not be lost whole.
func TestACaptionAboveTheLimitIsCut(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	ada.Send("hello")
	dir := files(t, map[string][]byte{"a.txt": []byte("a")})
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
	for n, want := range map[int]int{maxCaption: maxCaption, maxCaption + 1: maxCaption} {
		o := out(chatOf(ada.ID()), strings.Repeat("x", n))
		o.File = &core.File{Path: "a.txt", Name: "a.txt"}
		d := b.Send(t.Context(), o)
		all := s.History(ada.DM())
		if m := all[len(all)-1]; d.Outcome != core.Sent || len(m.Text) < want-4 || len(m.Text) > want+4 || m.File == "" {
			t.Errorf("%d: %+v, %d shown", n, d, len(m.Text))
		}
	}
}

// An upload ends as every send does: refusals for pace are obeyed, other
// refusals are final, and what may have arrived is unknown.
func TestTheOutcomeOfAnUploadReflectsWhatThePlatformMayHave(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	ada.Send("hello")
	dir := files(t, map[string][]byte{"a.txt": []byte("a"), "b.png": drawn(t, 4, 4)})
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
	send := func(name string) core.Delivery {
		o := out(chatOf(ada.ID()), "")
		o.File = &core.File{Path: name, Name: name}
		return b.Send(t.Context(), o)
	}
	for _, c := range []struct {
		fault telegramtest.Fault
		name  string
		want  core.Outcome
	}{
		{telegramtest.Fault{Kind: telegramtest.Flooded, Method: "sendDocument", RetryAfter: 7, Count: 1}, "a.txt", core.RetryAfter},
		{telegramtest.Fault{Kind: telegramtest.Flooded, Method: "sendPhoto", RetryAfter: 7, Count: 1}, "b.png", core.RetryAfter},
		{telegramtest.Fault{Kind: telegramtest.Broken, Method: "sendDocument", Status: http.StatusBadGateway, Count: 1}, "a.txt", core.Unknown},
		{telegramtest.Fault{Kind: telegramtest.Reset, Method: "sendDocument", After: true, Count: 1}, "a.txt", core.Unknown},
		{telegramtest.Fault{Kind: telegramtest.Broken, Method: "sendDocument", Status: http.StatusServiceUnavailable, Count: 1}, "a.txt", core.NotSent},
	} {
		inject(t, s, c.fault)
		if d := send(c.name); d.Outcome != c.want || c.want == core.RetryAfter && d.After.Seconds() != 7 || strings.Contains(d.Reason, s.Token()) {
			t.Errorf("%+v: %+v", c.fault, d)
		}
	}
	ada.Block()
	if d := send("b.png"); d.Outcome != core.Refused || !strings.Contains(d.Reason, "blocked") {
		t.Errorf("to somebody who blocks the bot: %+v", d)
	}
}
