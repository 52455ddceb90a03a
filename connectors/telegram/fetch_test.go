package telegram

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

// receive gives the file of a message that a person sends.
func receive(t *testing.T, s *telegramtest.Server, f telegramtest.File) (*Bot, core.File) {
	t.Helper()
	ada := s.NewUser("Ada")
	if _, err := ada.Post(ada.DM(), telegramtest.Outgoing{File: &f}); err != nil {
		t.Fatal(err)
	}
	store := &connectorstest.Store{}
	b := connect(t, s, store, nil)
	run1(t, b, store)
	in := store.Await(t, 1)[0]
	if len(in.Files) != 1 || in.Files[0].Path != "" || in.Files[0].Ref == "" {
		t.Fatalf("files %+v", in.Files)
	}
	return b, in.Files[0]
}

func TestAFileIsFetchedAsItWasSent(t *testing.T) {
	data := bytes.Repeat([]byte("picture\x00"), 1000)
	for _, kind := range []string{"photo", "document", "voice", "audio", "video", "video_note"} {
		b, f := receive(t, platform(t, telegramtest.Options{}), telegramtest.File{Kind: kind, Name: "a.bin", Data: data})
		var got bytes.Buffer
		if err := b.Fetch(t.Context(), f, &got); err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%s: %d bytes, %v", kind, got.Len(), err)
		}
		if f.Size != int64(len(data)) || f.Name == "" || f.Voice != (kind == "voice") {
			t.Errorf("%s: %+v", kind, f)
		}
	}
}

func TestAFileThatCannotBeHadIsRefusedWithTheReason(t *testing.T) {
	s := platform(t, telegramtest.Options{})
	b, f := receive(t, s, telegramtest.File{Kind: "document", Name: "film.mkv", Size: maxFetch + 1})
	var got bytes.Buffer
	undeclared := f
	undeclared.Size = 0
	for name, f := range map[string]core.File{"declared": f, "undeclared": undeclared} {
		if err := b.Fetch(t.Context(), f, &got); core.KindOf(err) != core.TooLarge || !strings.Contains(core.TextOf(err), "20 MB") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Fetch(t.Context(), core.File{Ref: "gone"}, &got); core.KindOf(err) != core.NotFound {
		t.Errorf("gone: %v", err)
	}
	if got.Len() > 0 {
		t.Errorf("%d bytes were written", got.Len())
	}
}

// What may be had later is of no kind, and no error tells the token, which
// stands in the address of every file.
func TestAFailedDownloadIsRetriedAndShowsNoToken(t *testing.T) {
	s := platform(t, telegramtest.Options{})
	b, f := receive(t, s, telegramtest.File{Kind: "document", Data: []byte("whole")})
	for _, fault := range []telegramtest.Fault{
		{Method: "file", Kind: telegramtest.Broken, Status: 502, Count: 1},
		{Method: "file", Kind: telegramtest.Half, Count: 1}, {Method: "getFile", Kind: telegramtest.Broken, Status: 500, Count: 1},
	} {
		inject(t, s, fault)
		err := b.Fetch(t.Context(), f, &bytes.Buffer{})
		if err == nil || core.KindOf(err) != core.Other || strings.Contains(err.Error(), s.Token()) {
			t.Errorf("%+v: %v", fault, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Fetch(ended, f, &bytes.Buffer{}); err == nil || strings.Contains(err.Error(), s.Token()) {
		t.Errorf("ended: %v", err)
	}
	var got bytes.Buffer
	if err := b.Fetch(t.Context(), f, &got); err != nil || got.String() != "whole" {
		t.Errorf("afterwards %q, %v", got.String(), err)
	}
}

// A server that lies about a file's size, sends more, or points elsewhere gets
// no more of us than the limit, and no request goes anywhere else.
func TestADownloadComesFromTheServerAloneAndEndsAtTheLimit(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	endless := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/getFile"):
			w.Write([]byte(`{"ok":true,"result":{"file_id":"x","file_path":"a/../b c?d#e"}}`))
		case !endless:
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		default:
			if !strings.HasSuffix(r.URL.Path, "/a/../b c?d#e") {
				t.Errorf("path %q", r.URL.Path)
			}
			for chunk := make([]byte, 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}))
	defer s.Close()
	b, err := New(Options{Name: "bot", Token: telegramtest.DefaultToken, APIURL: s.URL, Cursors: &connectorstest.Store{}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Fetch(t.Context(), core.File{Ref: "x"}, &bytes.Buffer{}); err == nil || core.KindOf(err) != core.Other {
		t.Errorf("redirect: %v", err)
	}
	endless = true
	var got bytes.Buffer
	if err := b.Fetch(t.Context(), core.File{Ref: "x"}, &got); core.KindOf(err) != core.TooLarge || got.Len() > maxFetch+1 {
		t.Errorf("endless: %d bytes, %v", got.Len(), err)
	}
}
