package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/admin"
	"gatehouse/admin/chats"
	"gatehouse/admin/logged"
	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/attach/content"
	"gatehouse/core/bus"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/runs"
	"gatehouse/core/sealed"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
)

var _ chats.Traces = (*inspect.Reader)(nil)

// chatWorld is the real store of sessions, with the switches of a world.
type chatWorld struct {
	*session.Store
	w  *world
	db *store.DB
}

func (c chatWorld) List(ctx context.Context, f session.Filter) ([]session.Session, string, error) {
	list, next, err := c.Store.List(ctx, f)
	return list, next, errors.Join(err, c.w.fault())
}

func (c chatWorld) Detail(ctx context.Context, id string) (session.Detail, error) {
	return c.Store.Detail(ctx, c.db, id)
}

func (c chatWorld) Bound(ctx context.Context, id string) (core.Address, bool, error) {
	return c.Store.Bound(ctx, c.db, id)
}

func (c chatWorld) tx(by core.Actor, note string, f func(tx *store.Tx) error) error {
	err := c.db.Tx(context.Background(), f)
	if err == nil {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		c.w.note(by, "%s", note)
	}
	return err
}

func (c chatWorld) Update(ctx context.Context, id string, ch session.Change, by core.Actor) error {
	return c.tx(by, "update "+id, func(tx *store.Tx) error {
		_, err := c.Store.Update(ctx, tx, id, ch, by)
		return err
	})
}

func (c chatWorld) Lower(ctx context.Context, id string, level core.Trust, by core.Actor) error {
	return c.tx(by, "lower "+id, func(tx *store.Tx) error { return c.Store.Lower(ctx, tx, id, level, by) })
}

func (c chatWorld) Delete(ctx context.Context, id string, by core.Actor) error {
	return c.tx(by, "delete "+id, func(tx *store.Tx) error { return c.Store.Delete(ctx, tx, id, by) })
}

func (c chatWorld) Stop(_ context.Context, id string, by core.Actor) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for i, a := range c.w.active {
		if a.Session == id {
			c.w.active = append(c.w.active[:i:i], c.w.active[i+1:]...)
			c.w.note(by, "stop %s", id)
			return nil
		}
	}
	if c.w.waits != id {
		return core.Errorf(core.Conflict, "nothing is running in this conversation")
	}
	c.w.waits = ""
	c.w.note(by, "stop %s", id)
	return nil
}

func (c chatWorld) Waits(_ context.Context, id string) (bool, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.w.waits == id, nil
}

func (w *world) fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

func (w *world) runsNow() []bus.Info {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active
}

// sources returns "api" and the platforms of the bots, at least one.
func (w *world) sources() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []string{"api", "telegram"}
	for _, b := range w.bots {
		if !slices.Contains(list, b.Platform) {
			list = append(list, b.Platform)
		}
	}
	return list
}

// openChats fills the options with real stores over db.
func (w *world) openChats(t *testing.T, db *store.DB, o *admin.Options) {
	sessions := session.New(session.Options{DB: db, Vault: w.vault, Clock: w.clock})
	t.Cleanup(func() { _ = sessions.Close() })
	w.chats = chatWorld{sessions, w, db}
	ledger := usage.New(nil, usage.Budgets{})
	o.Chats.Chats, o.Chats.Acts, o.Chats.Runs, o.Chats.Active, o.Chats.Sources = w.chats, w.chats, runs.New(db, w.clock), w.runsNow, w.sources
	o.Log, o.Chats.Logs = &w.logged, true
	o.Chats.Models = func(context.Context, session.Session) ([]string, error) {
		return []string{"anthropic/claude-sonnet-4-5", "local/quote"}, nil
	}
	o.Chats.Search, o.Chats.Bound, o.Chats.Waits, o.Chats.Groups = w.chats.Search, w.chats.Bound, w.chats.Waits, w.chats.Groups
	box, err := sealed.Create(filepath.Join(t.TempDir(), "content.key"))
	must(err)
	w.ledger = attach.NewLedger(db, box, 0, 0)
	o.Chats.Read = w.ledger.ReadFor
	rows := inspect.New(db, inspect.Options{Clock: w.clock})
	o.Chats.Traces, o.Operations.Stalled = rows, rows.Stalled
	o.Chats.Spent = func(ctx context.Context, runs ...string) (map[string]usage.Total, error) {
		return ledger.Spent(ctx, db, runs...)
	}
}

const (
	adaRun = "0192fa3c-41aa-7000-8000-000000000001"
	opRun  = "0192fa3c-41aa-7000-8000-000000000002"
)

func text(s string) core.Block { return core.Block{Type: "text", Text: s} }

// talks makes three conversations: in a chat, of the operator, and an archived one.
func (w *world) talks() {
	now := core.Stamp(w.clock.Now())
	ask := transcript.Message{Role: "user", Blocks: []core.Block{text("When is the allotment meeting, and who brings the seed potatoes?"), {Type: "media", Media: []core.Media{{Type: "image/png", Name: "shed.png", Data: append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 2040)...)}}}}}
	call := transcript.Message{Role: "assistant", Model: "anthropic/claude-sonnet-4-5", Blocks: []core.Block{
		{Type: "thinking", Text: "The notes should say it.", Signature: "s"},
		{Type: "tool_use", ID: "c1", Name: "Grep", Input: json.RawMessage(`{"pattern":"meeting","path":"Allotment"}`)},
		{Type: "tool_use", ID: "c2", Name: "Read", Input: json.RawMessage(`{"file_path":"Allotment/missing.md"}`)}}}
	result := transcript.Message{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "c1", Text: "Allotment/plan.md:14: meeting on Thursday at seven"}, {Type: "tool_result", ToolUseID: "c2", Text: "there is no such file", IsError: true}}}
	reply := transcript.Message{Role: "assistant", Model: "anthropic/claude-sonnet-4-5", Stop: "end_turn", Blocks: []core.Block{text("On Thursday at seven, in the shed by the gate.\n\nInes brings the seed potatoes.")}}
	w.ada = w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "39902211"}, User: 2, Trust: core.Vault, Source: "telegram"}, "Allotment meeting", adaRun, ask, call, result, reply)
	w.mine = w.talk(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: "0192fa3c-41aa-7000-8000-0000000000aa"}, User: core.Operator, Trust: core.Full, Options: &core.Options{}}, "", opRun,
		transcript.Message{Role: "user", Blocks: []core.Block{text("Sum up what happened this week.")}})
	old := w.talk(session.Ref{Address: core.Address{Bot: "family", Chat: "7"}, User: 3, Trust: core.Sandboxed, Source: "telegram"}, "Homework help", "r3", transcript.Message{Role: "user", Blocks: []core.Block{text("hello")}})
	yes := true
	must(w.chats.Update(context.Background(), old, session.Change{Archived: &yes, AddTags: []string{"school"}}, core.Actor{}))
	w.did, w.actors = nil, nil
	w.active = []bus.Info{{Run: opRun, Session: w.mine}}
	w.logged.items = []logged.Item{
		{Session: w.mine, Title: "Sum up what happened this week.", Summary: "Asked for a summary of the week; the allotment meeting is on Thursday.", Number: 2, At: w.clock.Now().Add(-time.Minute)},
		{Session: w.mine, Title: "Sum up what happened this week.", Summary: "<b>Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft</b>", Number: 1, At: w.clock.Now().Add(-time.Hour)},
	}
	must(w.chats.db.Tx(context.Background(), func(tx *store.Tx) error {
		for _, q := range []string{
			`INSERT INTO runs (id, session_id, attempt, state, bot, chat, user_id, model, started, ended) VALUES ('` + adaRun + `', '` + w.ada + `', 1, 'done', 'telegram', '39902211', 2, 'anthropic/claude-sonnet-4-5', '` + core.Stamp(w.clock.Now().Add(-4*time.Second)) + `', '` + now + `')`,
			`INSERT INTO runs (id, session_id, attempt, state, bot, chat, user_id, started) VALUES ('` + opRun + `', '` + w.mine + `', 1, 'running', 'api', '` + w.mine + `', 1, '` + now + `')`,
			`INSERT INTO inbox (bot, update_id, chat, lane, kind, message_id, sender, state, run, received_at, sent_at) VALUES ('telegram', '42:77', '39902211', 'l', 'message', '1207', '39902211', 'done', '` + adaRun + `', '` + now + `', '` + now + `')`,
			`INSERT INTO outbox (bot, chat, key, ordinal, body, state, attempts, platform_message_id, created_at, sent_at) VALUES ('telegram', '39902211', 'run:` + adaRun + `', 0, '{"text":"On Thursday at seven"}', 'sent', 1, '1208', '` + now + `', '` + now + `')`,
			`INSERT INTO inbox (bot, update_id, chat, lane, kind, sender, state, request, received_at) VALUES ('telegram', '42:78', '611', 'l2', 'message', '7214450193', 'held', 'r1', '` + now + `')`,
			`INSERT INTO inbox (bot, update_id, chat, lane, kind, sender, state, due, received_at) VALUES ('telegram', '42:79', '612', 'l3', 'message', '612', 'limited', '` + now + `', '` + now + `')`,
		} {
			if _, err := tx.Exec(context.Background(), q); err != nil {
				return err
			}
		}
		cost := int64(31_400)
		return usage.New(nil, usage.Budgets{}).Record(context.Background(), tx, usage.Row{Run: adaRun, Session: w.ada, User: 2, Bot: "telegram", Model: "anthropic/claude-sonnet-4-5", Input: 9120, Output: 214, CacheRead: 3000, MicroUSD: &cost})
	}))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w *world) talk(ref session.Ref, title, run string, messages ...transcript.Message) (id string) {
	ctx := context.Background()
	must(w.chats.db.Tx(ctx, func(tx *store.Tx) error {
		s, _, _, err := w.chats.Resolve(ctx, tx, ref)
		if err != nil {
			return err
		}
		id = s.ID
		return w.chats.Finish(ctx, tx, id, session.Finish{Messages: len(messages), Title: title, At: w.clock.Now()})
	}))
	d, err := w.chats.Detail(ctx, id)
	must(err)
	c, err := w.chats.Open(ctx, d.Session)
	must(err)
	must(errors.Join(c.Append(run, 0, messages...), c.Sync(), c.Close()))
	for n := 1; n > 0; { // as upkeep fills the search
		n, err = w.chats.Fill(ctx)
		must(err)
	}
	return id
}

func TestConversationsAreFoundFilteredAndRead(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/chats").has(t, "No one has talked to a bot yet.", "No conversation yet")
	s.world.full()
	a := s.get("/admin/chats")
	a.has(t, "1 conversation is being answered right now.", ">Allotment meeting</a>", "<bdi>Ines Carvalho</bdi>", `<span class="pill note">Running</span>`)
	a.lacks(t, "Homework help")
	s.get("/admin/chats?state=all&tag=school").has(t, "Homework help", `<span class="pill idle">Archived</span>`)
	s.get("/admin/chats?q=allot").has(t, "Allotment meeting", "What matches")
	s.get("/admin/chats?q=potatoes").has(t, "Allotment meeting", "Ines brings the seed potatoes.</small>")
	s.get("/admin/chats?user=3&state=all").lacks(t, "Allotment meeting")
	s.get("/admin/chats?q=nothing-like-this").has(t, "No conversation matches.", "Nothing matches", "Show all")

	a = s.get("/admin/chats/" + s.world.ada)
	a.has(t, "who brings the seed potatoes?", "<bdi>A picture</bdi></a> <small>image/png, 2 KB</small>", "The notes should say it.", "<bdi>Grep Allotment</bdi>", "meeting on Thursday at seven",
		`<span class="pill bad">Failed</span>`, "there is no such file", "Ines brings the seed potatoes.", "telegram, chat <span class=\"num\">39902211</span>",
		`<span class="pill good">Answered</span>`, "4.0 s", "12,334", "$0.03", "/admin/chats/trace?run="+adaRun)
	a.lacks(t, "Stop the answer")
	s.get("/admin/chats/"+s.world.mine).has(t, "Stop the answer", `action="/admin/chats/`+s.world.mine+`/stop"`)
	if a := s.get("/admin/chats/0192fa3c-41aa-7000-8000-0000000000ff"); a.status != 404 {
		t.Errorf("an unknown conversation: status %d", a.status)
	}
}

func TestAConversationIsChangedWithoutJavaScript(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	id := s.world.ada
	for _, c := range []struct{ verb, value, says, shows string }{
		{"rename", "Spring <plans>", "Renamed.", "Spring &lt;plans&gt;"},
		{"tag", "Garden", "Tagged.", `<span class="pill" dir="auto">garden</span>`},
		{"untag", "garden", "The tag is taken off.", `<span class="none">none</span>`},
		{"agent", "notes", "notes answers there from the next turn on.", `<option selected>notes</option>`},
		{"lower", "sandboxed", "at sandboxed at most", "<dd>sandboxed</dd>"},
		{"archive", "", "Archived.", `<span class="pill idle">Archived</span>`},
		{"unarchive", "", "among the others again", "Archive</button>"},
	} {
		s.post("/admin/chats/"+id+"/"+c.verb, url.Values{"value": {c.value}}).has(t, `class="flash good"`, c.says, c.shows)
		if by := s.world.lastActor(); by != (core.Actor{User: core.Operator, Via: "panel"}) {
			t.Errorf("%s by %+v", c.verb, by)
		}
	}
	s.post("/admin/chats/"+id+"/lower", url.Values{"value": {"full"}}).has(t, `class="flash note"`, "at sandboxed already")
	s.post("/admin/chats/"+s.world.mine+"/stop", nil).has(t, "The answer is being stopped.")
	s.post("/admin/chats/"+s.world.mine+"/stop", nil).has(t, `class="flash note"`, "Nothing is running in this conversation.")
	s.world.waits = id
	s.get("/admin/chats/"+id).has(t, "A message waits for its turn.", `action="/admin/chats/`+id+`/stop"`, "Stop what waits", `data-every="2"`)
	s.post("/admin/chats/"+id+"/stop", nil).has(t, "The answer is being stopped.")
	s.get("/admin/chats/"+id).lacks(t, "Stop what waits")
	s.post("/admin/chats/"+id+"/delete", nil).has(t, "in the trash for 30 days", "<h1>Chats</h1>")
	s.get("/admin/chats?state=all").lacks(t, "Spring")
}

func TestWhatHappenedToAMessageIsReportedFromUpdateToReply(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	want := []string{"It was answered, and the reply arrived.", ">Done with</span>", "42:77", "took 4.0 s", "12,334 tokens in 1 call, $0.03", "<bdi>Grep Allotment</bdi>", ">Arrived</span>", "On Thursday at seven", `message <span class="num">1208</span>`}
	s.get("/admin/chats/trace?bot=telegram&id=42%3A77").has(t, want...)
	s.get("/admin/chats/trace?run="+adaRun).has(t, append(want, `<option selected>telegram</option>`, `name="id" required maxlength="200" value="42:77"`)...)
	s.get("/admin/chats/trace?bot=telegram&id=42%3A80").has(t, "Not found", "Telegram knows no update 42:80")
	s.get("/admin/chats/trace?run="+opRun).has(t, "It is being answered right now.", `data-every="5"`)
	s.get("/admin/chats/trace?run=none").has(t, "Its record was deleted.", "The record of the run was deleted.")
	s.get("/admin/chats/trace?bot=telegram&id=42%3A78").has(t, "Held until its sender is approved.")
	s.get("/admin/queue").has(t, "Held back", `<span class="pill warn">Held until its sender is approved</span>`, `<span class="pill warn">Over the rate limit: waits</span>`)
	must(s.world.chats.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE outbox SET state = 'unknown', error = 'the line broke' WHERE platform_message_id = '1208'`)
		return err
	}))
	s.get("/admin/chats/trace?run="+adaRun).has(t, "It was answered; whether the reply arrived is unknown.", "the line broke", `<span class="pill warn">May have arrived</span>`)
	must(s.world.chats.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE outbox SET state = 'sent', error = '' WHERE platform_message_id = '1208'`)
		return errors.Join(err, runs.Break(t.Context(), tx, adaRun, "auth"))
	}))
	a := s.get("/admin/chats/trace?run=" + adaRun)
	a.has(t, "It was not answered: the run failed (auth), and the message that says so arrived.", `<span class="pill bad">Failed</span>`)
	a.lacks(t, "It was answered", "The reply was sent")
}

func TestWhatHappenedToAMessageIsSeldomReadAgainOnceItsRunHasEnded(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for _, every := range []string{"5", "60"} {
		s.get("/admin/chats/trace?run="+adaRun).has(t, `data-every="`+every+`"`)
		s.later()
		s.later()
	}
	s.get("/admin/chats/trace?run="+opRun).has(t, `data-every="5"`)
}

func TestTheToolCallsOfAnOldRunAreShownInWhatHappenedToItsMessage(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	d, err := w.chats.Detail(t.Context(), w.ada)
	must(err)
	c, err := w.chats.Open(t.Context(), d.Session)
	must(err)
	for i := range 500 {
		must(c.Append(fmt.Sprint("later-", i/2), 0, transcript.Message{Role: []string{"user", "assistant"}[i%2], Blocks: []core.Block{text("and then?")}}))
	}
	must(errors.Join(c.Sync(), c.Close()))
	a := s.get("/admin/chats/trace?run=" + adaRun)
	a.has(t, "<h3>Tool calls</h3>", "<bdi>Grep Allotment</bdi>", "meeting on Thursday at seven", "there is no such file")
	a.lacks(t, "Not all are shown")
}

// A brokenChats has the parts of a message's way fail that the test names.
type brokenChats struct {
	chats.Chats
	detail, spent error
}

func (c *brokenChats) Detail(ctx context.Context, id string) (session.Detail, error) {
	d, err := c.Chats.Detail(ctx, id)
	return d, errors.Join(err, c.detail)
}

func TestWhatCannotBeReadOfAMessagesWayIsNotReportedAsNothing(t *testing.T) {
	var broken brokenChats
	var traces brokenTraces
	s := newSite(t, nil, func(o *admin.Options) {
		spent := o.Chats.Spent
		broken.Chats, o.Chats.Chats = o.Chats.Chats, &broken
		traces.Traces, o.Chats.Traces = o.Chats.Traces, &traces
		o.Chats.Spent = func(ctx context.Context, runs ...string) (map[string]usage.Total, error) {
			if broken.spent != nil {
				return nil, broken.spent
			}
			return spent(ctx, runs...)
		}
	}).enter()
	s.world.full()
	at := "/admin/chats/trace?run=" + adaRun
	broken.detail = errors.New("disk I/O error")
	s.get(at).has(t, "<h3>Tool calls</h3>", "The tool calls can’t be read right now.", "12,334 tokens in 1 call")
	broken.detail, broken.spent = nil, errors.New("disk I/O error")
	a := s.get(at)
	a.has(t, "<bdi>Grep Allotment</bdi>", "<dt>Used</dt><dd>can’t be read right now")
	a.lacks(t, "<dd>nothing</dd>")
	broken.spent, traces.err = nil, errors.New("disk I/O error")
	s.get(at).has(t, "It was answered; what became of the reply can’t be read right now.")
	a = s.get("/admin/chats/trace?bot=telegram&id=42%3A77")
	a.has(t, "The update can’t be read right now.", "Its record can’t be read right now.")
	a.lacks(t, "deleted", "No run yet", "Nothing is stored to be sent")
}

// A brokenTraces fails with err.
type brokenTraces struct {
	chats.Traces
	err error
}

func (b *brokenTraces) Update(ctx context.Context, bot, id string) (inspect.Step, error) {
	s, err := b.Traces.Update(ctx, bot, id)
	return s, errors.Join(err, b.err)
}

func (b *brokenTraces) UpdatesOf(ctx context.Context, run string) ([]inspect.Step, error) {
	list, err := b.Traces.UpdatesOf(ctx, run)
	return list, errors.Join(err, b.err)
}

func (b *brokenTraces) RepliesOf(ctx context.Context, key string) ([]inspect.Sent, error) {
	list, err := b.Traces.RepliesOf(ctx, key)
	return list, errors.Join(err, b.err)
}

func TestALongConversationIsReadInPartsAndStaysLight(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	var messages []transcript.Message
	for i := range 60 {
		messages = append(messages, transcript.Message{Role: []string{"user", "assistant"}[i%2], Blocks: []core.Block{text(strings.Repeat("<ж", 1500) + " number " + string(rune('A'+i%26)) + strings.Repeat("x", 9000))}})
	}
	id := s.world.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "long"}, User: 2, Trust: core.Vault, Source: "telegram"}, "long", "rl", messages...)
	a := s.get("/admin/chats/" + id)
	if len(a.body) > 110_000 {
		t.Errorf("the page is %d bytes", len(a.body))
	}
	a.has(t, "The rest is in the export.")
	seen := 0
	for path := "/admin/chats/" + id; path != "" && seen < 70; {
		a = s.get(path)
		seen += strings.Count(a.body, `<li class="said`)
		path = ""
		if _, rest, ok := strings.Cut(a.body, `rel="prev" href="`); ok {
			path, _, _ = strings.Cut(rest, `"`)
		}
	}
	if seen != 60 {
		t.Errorf("by way of Earlier %d messages are seen, want each of 60 once", seen)
	}
}

func TestAnAnswerThatWasCutAtTheOutputLimitSaysSo(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	id := s.world.talk(session.Ref{Address: core.Address{Bot: "family", Chat: "8"}, User: 3, Trust: core.Sandboxed, Source: "telegram"}, "Long story", "r9",
		transcript.Message{Role: "user", Blocks: []core.Block{text("tell me all")}},
		transcript.Message{Role: "assistant", Model: "openai/m", Stop: "max_tokens", Blocks: []core.Block{text("Once upon a")}})
	s.get("/admin/chats/"+id).has(t, "Once upon a", "The answer ends here because it reached the model’s output limit.")
	s.get("/admin/chats/"+s.world.ada).lacks(t, "output limit")
}

// A bot that is added while the gateway runs brings its platform along.
func TestTheFilterOffersThePlatformsOfTheBotsThatThereAre(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	const choice = `<option value="matrix">Matrix</option>`
	s.get("/admin/chats").lacks(t, choice)
	s.world.mu.Lock()
	s.world.bots = append(s.world.bots, core.BotState{Bot: "new", Platform: "matrix", State: core.Running})
	s.world.mu.Unlock()
	s.get("/admin/chats").has(t, choice)
}

// The text of an attached file is below its name, without the fences that it has for the model.
func TestTheTextOfAnAttachedFileIsShownBelowItsName(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	id := s.world.talk(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: "0192fa3c-41aa-7000-8000-0000000000ab"}, User: core.Operator, Trust: core.Full, Options: &core.Options{Source: core.PanelSource}}, "A list", "r9",
		transcript.Message{Role: "user", Blocks: []core.Block{text("Sort this."), text(content.InMessage("list.csv", "tea;3\n<milk>;1\n"+strings.Repeat("x", 20), 20))}},
		transcript.Message{Role: "assistant", Stop: "end_turn", Blocks: []core.Block{text("Attached file list.csv:\n```\ntea;3\n```")}})
	a := s.get("/admin/chats/" + id)
	a.has(t, `<summary>Attached file <bdi>list.csv</bdi></summary><pre class="exact" dir="auto">tea;3`+"\n&lt;milk&gt;;1\nxxxxx</pre>", "Given to the model in part: the rest is left out.", "<bdi>Matteo</bdi> · Panel · ")
	a.lacks(t, "```")
	s.get("/admin/chats?q=A+list").has(t, `<td data-label="Began on">Panel</td>`)
	s.get("/admin/chats?source=panel").has(t, ">A list</a>")
	s.get("/admin/chats?source=api").lacks(t, ">A list</a>")
}
