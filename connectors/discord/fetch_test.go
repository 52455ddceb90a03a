package discord

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

// receive gives the file of a message that a person sends.
func (c *club) receive(data string) core.File {
	c.t.Helper()
	if _, err := c.ada.Post(c.ada.DM(), discordtest.Outgoing{Files: []discordtest.File{{Name: "a b.txt", Type: "text/plain", Data: []byte(data)}}}); err != nil {
		c.t.Fatal(err)
	}
	in := c.next()
	if len(in.Files) != 1 {
		c.t.Fatalf("files %+v", in.Files)
	}
	return in.Files[0]
}

func TestAFileIsFetchedAsItWasSent(t *testing.T) {
	c := newClub(t)
	f := c.receive("whole")
	var got bytes.Buffer
	if err := c.bot.Fetch(t.Context(), f, &got); err != nil || got.String() != "whole" {
		t.Errorf("%q, %v", got.String(), err)
	}
}

// The address of a file lives for a day; a message may wait longer.
func TestAnExpiredAddressIsAskedForAgain(t *testing.T) {
	c := newClub(t)
	f := c.receive("whole")
	ids, at, _ := strings.Cut(f.Ref, " ")
	f.Ref = ids + " " + at + ".expired"
	var got bytes.Buffer
	if err := c.bot.Fetch(t.Context(), f, &got); err != nil || got.String() != "whole" {
		t.Errorf("%q, %v", got.String(), err)
	}
	channel, rest, _ := strings.Cut(ids, "/")
	message, _, _ := strings.Cut(rest, "/")
	for name, ref := range map[string]string{
		"other file": channel + "/" + message + "/1 " + at + "x", "other message": channel + "/1/1 x", "no ids": "x", "hostile ids": "../1/2 x", "nothing": "",
	} {
		if err := c.bot.Fetch(t.Context(), core.File{Ref: ref}, &got); core.KindOf(err) != core.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFileThatIsTooLargeIsRefusedWithTheReason(t *testing.T) {
	c := newClub(t)
	f := c.receive("x")
	f.Size = maxFetch + 1
	var got bytes.Buffer
	if err := c.bot.Fetch(t.Context(), f, &got); core.KindOf(err) != core.TooLarge || !strings.Contains(core.TextOf(err), "10 MB") || got.Len() > 0 {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
}

func TestADownloadThatFailsIsTriedAgain(t *testing.T) {
	c := newClub(t)
	f := c.receive("whole")
	for _, fault := range []discordtest.Fault{{Kind: discordtest.Broken, Status: 502, Method: "file", Count: 1}, {Kind: discordtest.Half, Method: "file", Count: 1}} {
		if _, err := c.Inject(fault); err != nil {
			t.Fatal(err)
		}
		if err := c.bot.Fetch(t.Context(), f, &bytes.Buffer{}); err == nil || core.KindOf(err) != core.Other {
			t.Errorf("%+v: %v", fault, err)
		}
	}
	var got bytes.Buffer
	if err := c.bot.Fetch(t.Context(), f, &got); err != nil || got.String() != "whole" {
		t.Errorf("afterwards %q, %v", got.String(), err)
	}
}

// An event that names a file elsewhere makes the gateway ask nobody.
func TestFilesComeFromThePlatformAlone(t *testing.T) {
	real, err := New(Options{Name: "bot", Token: testToken, Cursors: &connectorstest.Store{}})
	if err != nil {
		t.Fatal(err)
	}
	fake, err := New(Options{Name: "bot", Token: testToken, Cursors: &connectorstest.Store{}, APIURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		bot  *Bot
		at   string
		ours bool
	}{
		{real, "https://cdn.discordapp.com/attachments/1/2/a.png?ex=1", true}, {real, "https://media.discordapp.net/x", true},
		{real, "http://cdn.discordapp.com/x", false}, {real, "https://cdn.discordapp.com.evil.example/x", false}, {real, "https://u@cdn.discordapp.com/x", false},
		{real, "https://127.0.0.1/x", false}, {real, "https://cdn.discordapp.com:8443/x", false}, {real, "file:///etc/passwd", false},
		{fake, "http://127.0.0.1:1/attachments/x", true}, {fake, "http://127.0.0.1:2/attachments/x", false}, {fake, "https://127.0.0.1:1/x", false},
	} {
		u, err := url.Parse(w.at)
		if err != nil {
			t.Fatal(err)
		}
		if w.bot.ours(u) != w.ours {
			t.Errorf("%s: %v", w.at, !w.ours)
		}
	}
}
