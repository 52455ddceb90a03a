package admin_test

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/admin"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/coretest"
	"gatehouse/core/diff"
	"gatehouse/core/permission"
	"gatehouse/core/permission/raise"
)

// askWorld and grantWorld are the guard of a world.
type (
	askWorld   struct{ *world }
	grantWorld struct{ *world }
)

func (w askWorld) list(limit int, match func(ask.Ask) bool) (out []ask.Ask) {
	for _, a := range w.asks {
		if match(a) && len(out) < limit {
			out = append(out, a)
		}
	}
	return out
}

func (w askWorld) Pending(_ context.Context, limit int) (out []ask.Waiting, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.list(limit, func(a ask.Ask) bool { return a.State == ask.Open && a.ExpiresAt.After(w.clock.Now()) }) {
		q, err := ask.View(a)
		if err != nil {
			return nil, err
		}
		out = append(out, q)
	}
	return out, w.broken
}

func (w askWorld) Recent(_ context.Context, limit int) ([]ask.Ask, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list(limit, func(a ask.Ask) bool { return a.State != ask.Open }), w.broken
}

func (w askWorld) Grant(_ context.Context, id, pattern string, by core.Actor) error {
	return w.settle(id, "granted", pattern, by)
}

func (w askWorld) Deny(_ context.Context, id string, by core.Actor) error {
	return w.settle(id, "denied", "", by)
}

func (w askWorld) settle(id, decision, pattern string, by core.Actor) error {
	defer w.ring(core.TopicApprovals)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.asks {
		a := &w.asks[i]
		if a.ID != id {
			continue
		}
		if a.State != ask.Open {
			return core.Errorf(core.Conflict, "already decided by %s at %s UTC", a.DecidedBy, a.DecidedAt.UTC().Format("15:04"))
		}
		if pattern != "" && !strings.Contains(a.Payload, pattern) {
			return core.Errorf(core.Invalid, "the pattern is not one of the suggested grants")
		}
		a.State, a.Decision, a.DecidedBy, a.DecidedAt = ask.Decided, decision, "operator via "+by.Via, w.clock.Now()
		w.note(by, "%s %s %s", decision, id, pattern)
		return nil
	}
	return core.Errorf(core.NotFound, "there is no such question any more")
}

func (w grantWorld) Grants(_ context.Context, _ string, _ int64) ([]permission.GrantRow, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.grants), w.broken
}

func (w grantWorld) Revoke(_ context.Context, id string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.grants)
	w.grants = slices.DeleteFunc(w.grants, func(g permission.GrantRow) bool { return g.ID == id })
	if n == len(w.grants) {
		return core.Errorf(core.NotFound, "there is no such grant any more")
	}
	w.note(by, "revoke grant %s", id)
	return nil
}

// call is an ask that waits.
func call(now time.Time, user int64, trust core.Trust, r core.PermissionRequest, reason string, commands ...string) ask.Ask {
	body, err := json.Marshal(map[string]any{"request": r, "session_id": "7f8a9c1e-0b52-4d3e-9a77-30d4c2b1e6f0", "user_id": user, "trust_level": trust, "commands": commands, "reason": reason})
	if err != nil {
		panic(err)
	}
	return ask.Ask{ID: r.ID, Kind: ask.KindPermission, Run: "run-" + r.ID, Bot: "telegram", Asker: user, Payload: string(body),
		State: ask.Open, CreatedAt: now.Add(-12 * time.Second), ExpiresAt: r.ExpiresAt}
}

// changing returns a with what it would change; an empty before is a new file.
func changing(a ask.Ask, before, after string) ask.Ask {
	old := &before
	if before == "" {
		old = nil
	}
	f := diff.Files("a file", old, after)
	return changed(a, &f)
}

func changed(a ask.Ask, f *diff.File) ask.Ask {
	var body ask.Payload
	must(json.Unmarshal([]byte(a.Payload), &body))
	body.Diff = f
	b, err := json.Marshal(body)
	must(err)
	a.Payload = string(b)
	return a
}

func grants(pairs ...string) (out []core.SuggestedGrant) {
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, core.SuggestedGrant{Scope: "folder", Pattern: pairs[i], Label: pairs[i+1]})
	}
	return out
}

// evening are the calls and grants of a busy evening.
func (w *world) evening() {
	now := w.clock.Now()
	end := now.Add(108 * time.Second)
	w.asks = []ask.Ask{
		call(now.Add(-20*time.Second), 2, core.Vault, core.PermissionRequest{ID: "q1", ToolName: "Write", Kind: "write", Path: "Allotment/minutes 2026-11.md", ExpiresAt: end,
			SuggestedGrants: grants(`Allotment/minutes 2026-11.md`, "This file in this conversation", "Allotment/*", "Files in Allotment in this conversation", "Allotment/**/*", "Everything below Allotment in this conversation", "**/*", "The whole vault in this conversation")}, "Write wants to write Allotment/minutes 2026-11.md."),
		call(now, 1, core.Full, core.PermissionRequest{ID: "q2", ToolName: "Bash", Kind: "bash", Command: "cd ~/garden && git add -A &&\n  git commit -m 'beds \u202egpj.exe' | tee log", ExpiresAt: end,
			SuggestedGrants: grants(`git add '*' ; git commit '*'`, "Commands like git add * ; git commit * in this conversation")}, "The command hides what it does: a variable.", "cd ~/garden", "git add -A", "git commit -m 'beds \u202egpj.exe'", "tee log"),
	}
	w.asks[0] = changing(w.asks[0], minutes, strings.NewReplacer("three beds", "four beds", "Nina waters.\n", "Nina waters on Mondays.\nTom waters on Fridays.\n").Replace(minutes))
	old := call(now.Add(-time.Hour), 2, core.Vault, core.PermissionRequest{ID: "q0", ToolName: "Read", Kind: "read", Path: "Private/taxes.md", ExpiresAt: now}, "")
	old.State, old.Decision, old.DecidedBy, old.DecidedAt = ask.Decided, "denied", "operator via chat", now.Add(-time.Hour)
	late := call(now.Add(-2*time.Hour), 3, core.Sandboxed, core.PermissionRequest{ID: "q9", ToolName: "Bash", Kind: "bash", Command: "ls -la", ExpiresAt: now}, "")
	late.State, late.Decision, late.DecidedAt = ask.Expired, "timeout", now.Add(-2*time.Hour)
	w.asks = append(w.asks, old, late)
	w.raises = []raise.Raise{
		{ID: "f1", State: raise.Held, Bot: "club", User: 1, Session: "c0ffee00-1111-4222-8333-944455556666", For: time.Hour, At: now.Add(-18 * time.Minute), Ends: now.Add(42 * time.Minute), By: "operator via panel"},
		{ID: "f2", State: raise.Asked, Bot: "telegram", User: 1, Session: "7f8a9c1e-0b52-4d3e-9a77-30d4c2b1e6f0", For: 20 * time.Minute, At: now.Add(-40 * time.Second), Ends: now.Add(14*time.Minute + 20*time.Second)},
	}
	w.grants = []permission.GrantRow{
		{ID: "g1", Session: "7f8a9c1e-0b52-4d3e-9a77-30d4c2b1e6f0", User: 2, Trust: core.Vault, Kind: "write", Pattern: "Allotment/plans/*", By: "operator via panel", At: now.Add(-3 * time.Hour)},
		{ID: "g2", Session: "c0ffee00-1111-4222-8333-944455556666", User: 1, Trust: core.Vault, Kind: "bash", Pattern: "git status *", By: "operator via chat", At: now.Add(-26 * time.Hour)},
	}
}

func TestAToolCallIsShownExactlyWithWhoAsksAndWhatMayBeGranted(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/approvals")
	a.has(t, "2 tool calls and 1 question about trust wait for your approval.", "Write wants to change", "Allotment/minutes 2026-11.md", "<bdi>Ines Carvalho</bdi></b> at trust <b>vault</b>", `data-left="108"`,
		`name="pattern" value="" checked`, `name="pattern" value="Allotment/*"`, "This call only", "The whole vault in this conversation",
		"Bash wants to run", "<bdi>Matteo</bdi></b> at trust <b>full</b>", "cd ~/garden &amp;&amp; git add -A &amp;&amp;\n  git commit", `gpj.exe`, "<li><code class=\"exact\" dir=\"ltr\">tee log</code></li>",
		`<span class="pill bad">Denied</span>`, "operator via chat", `<span class="pill idle">No answer</span>`,
		"Allotment/plans/*", "git status *", `href="/admin/approvals" aria-current="page"`)
	a.has(t, `<p class="reason warn">The command hides what it does: a variable.</p>`)
	a.lacks(t, "Write wants to write") // that is said already
	a.has(t, `\u{202E}`)               // the mark that turns the direction of writing is seen as such
	a.lacks(t, "\u202e")
	s.get("/admin").has(t, "Tool calls", "Write wants to change Allotment/minutes 2026-11.md", `2<i class="unseen"> waiting</i>`)
}

// Nobody is asked to say yes to what they can't see.
func TestNothingOfAToolCallIsHidden(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	for what, r := range map[string]core.PermissionRequest{
		`ls\n\n\n\n\n\n` + "\nrm -r Notes":              {Command: "ls\n\n\n\n\n\n\nrm -r Notes"},
		"ls (4000 spaces) rm -r Notes":                  {Command: "ls" + strings.Repeat(" ", 4000) + "rm -r Notes"},
		`ls\u{200B}\u{3164}\u{2800}\u{A0}rm -r Notes`:   {Command: "ls\u200b\u3164\u2800\u00a0rm -r Notes"},
		`ls \u{9}\u{D}\u{1B}[2K rm -r Notes`:            {Command: "ls \t\r\x1b[2K rm -r Notes"},
		`Notes/a.md\nCLAUDE.md`:                         {Path: "Notes/a.md\nCLAUDE.md"},
		`Notes/\u{202E}dm.a`:                            {Path: "Notes/\u202edm.a"},
		strings.Repeat("echo a; ", 900) + "rm -r Notes": {Command: strings.Repeat("echo a; ", 900) + "rm -r Notes"},
	} {
		r.ID, r.ToolName, r.ExpiresAt = "q1", "Bash", s.clock.Now().Add(time.Minute)
		s.world.asks = []ask.Ask{call(s.clock.Now(), 1, core.Vault, r, "")}
		s.get("/admin/approvals").has(t, `<pre class="exact" dir="ltr" tabindex="0" role="group" aria-label="What it would `, ">"+what+"</pre>")
	}
}

// minutes is a file that a call would change.
const minutes = "# Minutes\n\n- We dig three beds.\n- The shed is painted.\n- The gate squeaks.\n- Rent is paid.\n- No slugs.\n- Compost is full.\n- The tap drips.\n- Seeds are ordered.\n- Nina waters.\n"

func TestAToolCallShowsWhatItWouldChangeInItsFile(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	write := func() ask.Ask {
		return call(s.clock.Now(), 1, core.Vault, core.PermissionRequest{ID: "q1", ToolName: "Write", Kind: "write", Path: "a.md", ExpiresAt: s.clock.Now().Add(time.Minute)}, "")
	}
	long := strings.Repeat("a line\n", 900)
	for _, c := range []struct {
		name string
		ask  ask.Ask
		has  []string
	}{
		{"changed words", changing(write(), "Buy tea.\nRest.\n", "Buy green tea.\nRest.\n"), []string{"1 line added, 1 removed.",
			"<span class=\"removed\">- Buy tea.\n</span>", "<span class=\"added\">&#43; Buy <b>green </b>tea.\n</span>", "<span>  Rest.\n</span>"}},
		{"new file", changing(write(), "", "Buy <b>.\n"), []string{"A new file: 1 line, 9 bytes.", "<span class=\"added\">&#43; Buy &lt;b&gt;.\n</span>"}},
		{"long", changing(write(), "", long), []string{"A new file: 900 lines", `<details class="fold" id="more-q1"><summary>360 more lines</summary>`, "500 more lines are not shown."}},
		{"binary", changing(write(), "\x89PNG\r\n\x1a\n\x00", "text"), []string{"A binary file: image/png, 9 bytes. It becomes text/plain, 4 bytes."}},
		{"invisible", changing(write(), "", "a\u202eb\n"), []string{"&#43; a\\u{202E}b\n"}},
		{"same", changing(write(), "a\n", "a\n"), []string{"Nothing changes: the file has this content already."}},
		{"unknown", changed(write(), &diff.File{Path: "a.md", Problem: "old_string is not in the file"}), []string{`<p class="reason warn">What would change can’t be shown. Old_string is not in the file.</p>`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.world.asks = []ask.Ask{c.ask}
			a := s.get("/admin/approvals")
			a.has(t, c.has...)
			a.lacks(t, "\u202e")
		})
	}
}

func TestAToolCallIsDecidedOnceAndTheSecondSeesByWhom(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	s := newSite(t, clock, nil).enter()
	s.world.full()
	if err := (askWorld{s.world}).Deny(t.Context(), "q1", core.Actor{User: 1, Via: "chat"}); err != nil {
		t.Fatal(err)
	}
	a := s.post("/admin/approvals/q1/allow", url.Values{"pattern": {""}})
	a.has(t, `<p class="flash note"`, "Already decided by operator via chat at 03:04 UTC.", "Denied by operator via chat.") // it stands in its place
	a.lacks(t, `action="/admin/approvals/q1/allow"`, `<tr id="d-q1">`)
	clock.Advance(10 * time.Second)
	s.get("/admin/approvals").has(t, `<tr id="d-q1">`)
	s.post("/admin/approvals/q2/allow", url.Values{"pattern": {"/etc/**"}}).has(t, `<p class="flash bad"`)
	s.post("/admin/approvals/q7/deny", nil).has(t, `<p class="flash note"`, "There is no such question any more.")
	clock.Advance(2 * time.Minute)
	s.get("/admin/approvals").lacks(t, `action="/admin/approvals/q2/allow"`) // its time is over
}

func TestTheApprovalsPageWithoutGrantsOrAsks(t *testing.T) {
	s := newSite(t, nil, func(o *admin.Options) { o.Approvals.Grants = nil }).enter()
	a := s.get("/admin/approvals")
	a.has(t, "Nothing to decide", "No tool call waits for your approval.")
	a.lacks(t, "Standing permissions", `<b class="badge">`)
	s = newSite(t, nil, func(o *admin.Options) { o.Approvals.Asks = nil }).enter()
	if a := s.get("/admin/approvals"); a.status != 404 {
		t.Errorf("without asks the page answers %d", a.status)
	}
}

func TestLongToolCallsDoNotMakeThePageHeavy(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	now := s.clock.Now()
	for i := range 60 {
		command := strings.Repeat("echo '<ж>' ; ", 40+i*8)
		s.world.asks = append(s.world.asks, call(now, 1, core.Vault, core.PermissionRequest{ID: "q" + string(rune('0'+i)), ToolName: "Bash", Kind: "bash", Command: command,
			ExpiresAt: now.Add(time.Minute), SuggestedGrants: grants("echo *", "Any echo *")}, "why", command))
	}
	for i := range 3 {
		s.world.asks = append([]ask.Ask{changing(call(now, 1, core.Vault, core.PermissionRequest{ID: "w" + string(rune('0'+i)), ToolName: "Write", Kind: "write", Path: "a.md",
			ExpiresAt: now.Add(time.Minute)}, ""), strings.Repeat("<'>&\n", 3000), strings.Repeat("<\"&\n", 3000))}, s.world.asks...)
	}
	for range 300 {
		s.world.grants = append(s.world.grants, permission.GrantRow{ID: "g", Session: strings.Repeat("s", 36), User: 1, Trust: core.Vault, Kind: "bash", Pattern: strings.Repeat("<", 60), By: "operator via panel", At: now})
	}
	a := s.get("/admin/approvals")
	a.has(t, "more wait; they appear here as you decide", "250 more are not shown", "63 tool calls wait")
	if n := len(a.body) + len(s.get("/static/admin.css").body) + len(s.get("/static/admin.js").body); n > 150_000 {
		t.Errorf("the page has %d bytes with style and script, want at most 150,000", n)
	}
}
