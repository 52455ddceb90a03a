package discord

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
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
