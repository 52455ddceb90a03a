package pairing

import (
	"testing"

	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/pairing/bots"
)

// rows returns how many rows there are of all that a person may leave.
func (w *world) rows() (n int) {
	w.t.Helper()
	w.ok(w.db.Get(ctx, &n, `SELECT (SELECT count(*) FROM pairing_requests) + (SELECT count(*) FROM users) + (SELECT count(*) FROM identities)
		+ (SELECT count(*) FROM access) + (SELECT count(*) FROM asks)`))
	return n
}

// Every kind of update, in every chat, under every policy: who is not one
// person asks for nothing, is let in nowhere and leaves nothing.
func TestAdmit_BotsServicesAndIdsThatAreNoPersonsLeaveNothing(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "7")
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "Club", core.Vault, panel))
	code, _, err := w.gate.Codes.NewClaim(ctx, true)
	w.ok(err)
	before, mails := w.rows(), len(w.mail.posts)
	peers := []core.Peer{
		{Platform: "telegram", ID: "8", Bot: true}, {Platform: "telegram", ID: "8", Shared: true},
		{Platform: "telegram", ID: "0"}, {Platform: "telegram", ID: "000"}, {Platform: "telegram", ID: "-8"}, {Platform: "telegram", ID: "-1001234567890"},
		{Platform: "telegram", ID: " -8"}, {Platform: "telegram", ID: ""}, {Platform: "", ID: "8"},
		{Platform: "telegram", ID: "777000", Shared: true}, // as its connector marks service accounts
		{Platform: "discord", ID: "643945264868098049", Shared: true}, {Platform: "discord", ID: "0"}, {Platform: "discord", ID: "9", Bot: true}, {Platform: "discord", ID: "9", Shared: true},
	}
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.SampledFrom(peers).Draw(rt, "from")
		bot := "tg"
		if from.Platform == "discord" {
			bot = "dc"
		}
		w.pol[bot] = bots.Policy{Platform: from.Platform, DM: rapid.SampledFrom([]string{bots.Pairing, bots.Open, bots.Allowlist}).Draw(rt, "policy"), Allowed: []string{from.ID}}
		in := core.Inbound{Address: core.Address{Bot: bot, Chat: "c", Place: rapid.SampledFrom([]string{"", "g", "new"}).Draw(rt, "place")},
			Kind: rapid.SampledFrom(allKinds).Draw(rt, "kind"), From: from, Addressed: rapid.Bool().Draw(rt, "addressed"),
			Text: rapid.SampledFrom([]string{"let me in", code, ""}).Draw(rt, "text")}
		if in.Kind == core.KindCommand {
			in.Command = rapid.SampledFrom([]string{"start", "claim", "help", "enable", "link"}).Draw(rt, "command")
		}
		if v := w.put(in); v.Action == core.Run || v.Action == core.Hold || v.Request != "" || v.Trust != core.Stranger {
			rt.Fatalf("%+v: %+v", in, v)
		}
		if trust := w.trust(in); trust != core.Stranger {
			rt.Fatalf("%+v has trust %s", in, trust)
		}
		if n := w.rows(); n != before || len(w.mail.posts) != mails {
			rt.Fatalf("%+v left %d rows and %d messages", in, n-before, len(w.mail.posts)-mails)
		}
	})
}
