package discord

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

// A bot that was added by its invitation may do in a server all that it does:
// answer in channels and threads with a reply, send files, react.
func TestTheInvitationAsksForAllThatTheBotDoes(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	g := s.NewGuild("Club", ada)
	talk := g.NewChannel("talk")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.md"), []byte("# Notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
	who, err := b.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	invite, err := url.Parse(who.Invite)
	if err != nil {
		t.Fatal(err)
	}
	if scopes := strings.Fields(invite.Query().Get("scope")); len(scopes) != 2 || scopes[0] != "bot" || scopes[1] != "applications.commands" {
		t.Errorf("the invitation asks for %q", scopes)
	}
	perms, err := strconv.ParseUint(invite.Query().Get("permissions"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	g.Permit(s.Bot(), 0, perms)
	m, err := ada.Say(talk, "hello")
	if err != nil {
		t.Fatal(err)
	}
	thread, err := ada.StartThread(talk, 0, "tea")
	if err != nil {
		t.Fatal(err)
	}
	to := core.Address{Bot: "bot", Chat: talk.String(), Place: g.ID().String()}
	inThread := core.Address{Bot: "bot", Chat: thread.String(), Place: g.ID().String()}
	for name, out := range map[string]core.Outgoing{
		"a reply":             {Address: to, Seq: 1, Part: core.Part{Text: "hi", ReplyTo: m.ID.String()}},
		"a file":              {Address: to, Seq: 2, Part: core.Part{Text: "see", File: &core.File{Path: "notes.md", Name: "notes.md"}}},
		"an answer in thread": {Address: inThread, Seq: 3, Part: core.Part{Text: "tea"}},
	} {
		if d := b.Send(t.Context(), out); d.Outcome != core.Sent {
			t.Errorf("%s: %v %s", name, d.Outcome, d.Reason)
		}
	}
	if err := b.React(t.Context(), to, m.ID.String(), "👀"); err != nil {
		t.Errorf("a reaction: %v", err)
	}
	if err := b.Typing(t.Context(), to); err != nil {
		t.Errorf("the typing sign: %v", err)
	}
}
