package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"gatehouse/admin"
	"gatehouse/admin/operations"
	"gatehouse/core"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// modelsWorld has two models and real figures.
type modelsWorld struct {
	w     *world
	rolls *usage.Rollups
}

func (m modelsWorld) Models() []operations.ModelRow {
	return []operations.ModelRow{
		{Name: "anthropic/claude-sonnet-4-5", Use: "answers", Priced: true, Input: 3_000_000, Output: 15_000_000, Can: []string{"tools", "images"}},
		{Name: "local/quote", Use: "stands in"},
	}
}

func (m modelsWorld) Test(_ context.Context, name string) (time.Duration, error) {
	if name == "local/quote" {
		return 0, errors.New("dial tcp: secret address")
	}
	return 412 * time.Millisecond, nil
}

func (modelsWorld) Trouble() string { return "" }

func (m modelsWorld) Chart(ctx context.Context, step time.Duration, n int, zone *time.Location) (usage.Chart, error) {
	c, err := m.rolls.Read(ctx, step, n, zone)
	return c, errors.Join(err, m.w.fault())
}

func (w *world) openModels(db *store.DB, o *admin.Options) {
	w.rolls = usage.NewRollups(db, w.clock, usage.New(nil, usage.Budgets{}).Tally, runs.New(db, w.clock).Tally, inspect.New(db, inspect.Options{Clock: w.clock}).Tally)
	o.Operations.Models = modelsWorld{w, w.rolls}
}

// figures has some days of use.
func (w *world) figures() {
	now := w.clock.Now().UTC()
	must(w.chats.db.Tx(context.Background(), func(tx *store.Tx) error {
		for i := range 60 {
			at := core.Stamp(now.Add(-time.Duration(i*i) * 7 * time.Minute))
			model := []string{"anthropic/claude-sonnet-4-5", "local/quote", "openai/gpt-5-mini"}[i%3]
			if _, err := tx.Exec(context.Background(), `INSERT INTO usage (at, run, session_id, user_id, bot, model, input, output, micro_usd) VALUES ($1, 'x', 's', $2, 'telegram', $3, $4, $5, $6)`,
				at, 1+i%4, model, 900+137*i, 40+i*11, 2100+i*333); err != nil {
				return err
			}
			state, waited := "done", time.Duration(0)
			if i%7 == 2 {
				waited = time.Duration(45+3*i) * time.Second
			}
			if i%9 == 5 {
				state = "error"
			}
			if _, err := tx.Exec(context.Background(), `INSERT INTO runs (id, session_id, attempt, state, bot, started, ended, model, waited_ms) VALUES ($1, 's', 1, $2, $3, $4, $5, $6, $7)`,
				"f"+string(rune('A'+i)), state, []string{"telegram", "family"}[i%2], core.Stamp(now.Add(-time.Duration(i*i)*7*time.Minute-time.Duration(900+i%7*1400)*time.Millisecond-waited)), at, model, waited.Milliseconds()); err != nil {
				return err
			}
			if _, err := tx.Exec(context.Background(), `INSERT INTO inbox (bot, update_id, chat, lane, kind, sender, state, received_at) VALUES ($1, $2, '1', 'fl', 'message', '1', $3, $4)`,
				[]string{"telegram", "family"}[i%2], fmt.Sprintf("figure-%d", i), map[bool]string{true: "refused", false: "done"}[i%11 == 3], at); err != nil {
				return err
			}
		}
		return nil
	}))
	for n := 1000; n >= 1000; {
		var err error
		n, err = w.rolls.Fill(context.Background())
		must(err)
	}
}

func TestTheModelsPageShowsPricesFiguresAndTests(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/models").has(t, "2 models are configured. None was called since midnight UTC.", `<li id="g-errors">What went wrong: nothing in this time.</li>`, "No one used a model in this time.")
	s.world.full()
	a := s.get("/admin/models")
	a.has(t, "$3.00 in, $15.00 out", "not known", `role="img" aria-label="Answers,`, "95 of 100 within (p95)", "<bdi>anthropic/claude-sonnet-4-5</bdi>", "As a table", "<bdi>Ines Carvalho</bdi>", `aria-label="Messages received,`, `aria-label="What went wrong,`, `<li class="c-bad"><svg aria-hidden="true"><rect width="100%" height="100%" rx="2" fill="url(#p-bad-1)"/></svg><bdi>answers that failed</bdi>`, `aria-label="Tokens by person,`, `aria-label="Cost by person,`,
		`<tr><th scope="row"><bdi>family</bdi></th><td data-label="Messages">`,
		`<a href="/admin/models?span=24h" aria-current="page">24 hours</a>`)
	for span, step := range map[string]string{"1h": "5 min", "7d": "", "30d": ""} {
		a := s.get("/admin/models?span=" + span)
		if !strings.Contains(a.body, `span=`+span+`" aria-current`) || !strings.Contains(a.body, `<rect x="`) {
			t.Errorf("%s (%s): no bars", span, step)
		}
	}
	// What the bars say, the table says: the tokens of the 30 days are all that was used.
	var all int64
	must(s.world.chats.db.Get(t.Context(), &all, `SELECT sum(input + output + cache_read + cache_write) FROM usage`))
	s.get("/admin/models?span=30d").has(t, "<p>"+message.NewPrinter(language.English).Sprintf("%d", all)+" in all</p>")
	s.get("/admin/models?span=30d").has(t, `<tr><th scope="row"><bdi>telegram</bdi></th><td data-label="Messages">33</td><td data-label="Answered">`)
	// Each model has what its answers took, as it was measured.
	var took struct{ N, MS, Asked int64 }
	must(s.world.chats.db.Get(t.Context(), &took, `SELECT count(*) AS n, CAST(round(avg((julianday(ended) - julianday(started)) * 86400000 - waited_ms)) AS INTEGER) AS ms, count(CASE WHEN waited_ms > 0 THEN 1 END) AS asked
		FROM runs WHERE model = 'local/quote' AND state = 'done' AND ended <> ''`))
	s.get("/admin/models?span=30d").has(t, fmt.Sprintf(`<td data-label="Takes">%.1f s <small>mean of %d, in 30 days; `, float64(took.MS)/1000, took.N), fmt.Sprintf(` waiting for people in %d</small></td>`, took.Asked))
	s.get("/admin/models?span=30d").has(t, "How long answers waited for people</h3>", "with approvals or questions.")
	s.world.setBroken(errors.New("disk I/O error"))
	b := s.get("/admin/models")
	b.has(t, "2 models are configured. What was used today can’t be read", `<td data-label="Takes"><span class="none">–</span></td>`)
	b.lacks(t, "None was called", "By bot", "No one used a model")
	s.world.setBroken(nil)
	s.post("/admin/models/test", url.Values{"model": {"anthropic/claude-sonnet-4-5"}}).has(t, "its first word came after 412 ms")
	bad := s.post("/admin/models/test", url.Values{"model": {"local/quote"}})
	bad.has(t, `class="flash bad"`, "Local/quote returned no valid answer")
	bad.lacks(t, "secret address")
	s.post("/admin/models/test", url.Values{"model": {"other"}}).has(t, `class="flash note"`)
}
