package admin_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"gatehouse/admin/logged"
)

// logWorld is a log of the owner's conversations.
type logWorld struct {
	items, unread []logged.Item
	faults        []logged.Fault
	broken        error // Unread returns it
}

func (l *logWorld) Recent(context.Context, int) ([]logged.Item, error) { return l.items, nil }
func (l *logWorld) Unread(context.Context, int) ([]logged.Item, error) { return l.unread, l.broken }
func (l *logWorld) Faults() []logged.Fault                             { return l.faults }

func TestOverviewShowsTheLogAndItsFaults(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin").lacks(t, "What did you talk about last?", "log of conversations")
	s.world.full()
	a := s.get("/admin")
	a.has(t, "What did you talk about last?", `<a href="/admin/chats/`+s.world.mine+`" dir="auto">Sum up what happened this week.</a>`, "the allotment meeting is on Thursday", "&lt;b&gt;Donau")
	a.lacks(t, "Is your log of conversations complete?")
	s.world.logged.faults = []logged.Fault{{File: "Daily/chat-log/2026-01-28.md", Text: "is a directory"}}
	s.world.logged.unread = []logged.Item{{Session: "s-1", Number: 4, Fault: "its transcript cannot be read: it has no such message"}}
	s.get("/admin").has(t, "log of conversations has faults", "Daily/chat-log/2026-01-28.md", "is a directory", "Exchange 4 of the conversation s-1", "it has no such message")
}

func TestFaultsOfTheLogAreShownWhenTheDatabaseFails(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.world.logged.broken = errors.New("disk I/O error: secret path")
	a := s.get("/admin")
	a.has(t, "Is your log of conversations complete?", "the log of conversations can’t be read", "What is missing in the log of your conversations can’t be read right now.")
	a.lacks(t, "secret path")
	s.world.logged.faults = []logged.Fault{{File: "Daily/chat-log/2026-01-28.md", Text: "is a directory"}}
	s.get("/admin").has(t, "Daily/chat-log/2026-01-28.md", "is a directory", "the log of conversations has faults", "can’t be read right now.")
	if !strings.Contains(s.log.String(), "secret path") {
		t.Error("the log does not say what is broken")
	}
}

func TestAConversationIsKeptOutOfTheLog(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	at := "/admin/chats/" + s.world.mine
	s.get(at).has(t, "Keep it out of the log", "Daily/chat-log")
	s.post(at+"/log", url.Values{"value": {"off"}}).has(t, "It is kept out of the log from now on.", "Log it in the vault")
	s.post(at+"/log", url.Values{"value": {"on"}}).has(t, "It is logged in the vault from now on.", "Keep it out of the log")
	s.get("/admin/chats/"+s.world.ada).lacks(t, "Keep it out of the log")
}
