package api

import (
	"path/filepath"
	"testing"
	"time"

	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
	apicouncil "gatehouse/web/api/council"
	"gatehouse/web/auth"
)

// council returns a real ledger over the harness's database.
func (h *harness) council() apicouncil.Options {
	box, err := sealed.Create(filepath.Join(h.t.TempDir(), "keys", "content"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.councils = ledger.New(ledger.Options{DB: h.db, Clock: h.clock, Seal: box})
	return apicouncil.Options{Store: h.councils, Pick: h.councils.Pick}
}

// dispute stores a question of the user's on which two members contradict each other.
func (h *harness) dispute(user int64, id string) {
	h.t.Helper()
	ctx, cost := h.t.Context(), int64(1200)
	_, _, err := h.councils.Begin(ctx, ledger.Query{ID: id, User: user, Conversation: "s1", Level: choice.High, Asked: choice.Maximum, Question: "How tall is the tower?", Seed: 7})
	r := ledger.Result{Query: id, Winner: "a", Reason: "welfare", Callout: choice.CalloutDisagreement, Confidence: choice.LabelUncertain, Used: []string{"a", "b"}, Calls: 4, MicroUSD: &cost,
		Note: ledger.Note{Reviews: []ledger.Reviewed{{Model: "c", Review: choice.Review{Verdict: choice.ReviewIncorrect, Issues: []string{"too tall"}}}}, Left: []string{"d: no answer in time"}, Contradict: [][2]string{{"a", "b"}}}}
	for i, text := range []string{"330 m", "300 m"} {
		model := string(rune('a' + i))
		if err == nil {
			err = h.councils.Save(ctx, ledger.Stage{Query: id, Stage: ledger.StageAnswer, Model: model, Content: text})
		}
		r.Runs = append(r.Runs, ledger.Run{Model: model, Round: ledger.RoundAnswer, Response: text, Utility: 0.4, Confidence: 0.9, Welfare: 0.5, State: "ok", Claim: i + 1, Detail: ledger.Detail{LatencyMS: 120, MicroUSD: &cost, Domain: "towers"}})
	}
	if err == nil {
		err = h.db.Tx(ctx, func(tx *store.Tx) error { return h.councils.Finish(ctx, tx, r) })
	}
	if err == nil {
		_, err = h.councils.ResolveDomain(ctx, "a", "towers", false, nil)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestCouncil_ADisputeIsReadAndPickedByTheOneWhoAsked(t *testing.T) {
	h := open(t, options{})
	h.dispute(7, "q1")
	key, other := h.key(auth.ScopeChat), h.keyOf(8, 1, auth.ScopeChat)
	page := h.want(200, "", key, "GET", "/api/council/queries?disputed=true&limit=1&session_id=s1", "")
	if list := page["queries"].([]any); len(list) != 1 || list[0].(map[string]any)["asked_level"] != "maximum" {
		t.Errorf("%v", page)
	}
	if page := h.want(200, "", other, "GET", "/api/council/queries", ""); len(page["queries"].([]any)) != 0 {
		t.Errorf("another user reads %v", page)
	}
	h.want(404, "not-found", other, "GET", "/api/council/queries/q1", "")
	h.want(404, "not-found", other, "POST", "/api/council/queries/q1/pick", `{"model_id":"b"}`)
	one := h.want(200, "", key, "GET", "/api/council/queries/q1", "")
	if o := one["disagreement_options"].([]any); len(o) != 2 || one["pick_until"] == nil {
		t.Errorf("%v", one)
	}
	h.want(400, "invalid-request", key, "POST", "/api/council/queries/q1/pick", `{"model_id":"z"}`)
	h.want(400, "invalid-request", key, "POST", "/api/council/queries/q1/pick", `{}`)
	for range 2 {
		got := h.want(200, "", key, "POST", "/api/council/queries/q1/pick", `{"model_id":"b"}`)
		if got["picked"] != "b" || got["winner"] != "b" || got["pick_until"] != nil {
			t.Errorf("%v", got)
		}
	}
	h.want(409, "conflict", key, "POST", "/api/council/queries/q1/pick", `{"model_id":"a"}`)
	h.want(400, "invalid-request", key, "GET", "/api/council/queries?cursor=x", "")
	h.want(400, "invalid-request", key, "GET", "/api/council/queries?disputed=maybe", "")
}

func TestCouncil_FiguresOfModelsAndDomains(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeAdmin, auth.ScopeChat)
	for _, id := range []string{"q1", "q2", "q3"} {
		h.dispute(7, id)
		h.want(200, "", key, "POST", "/api/council/queries/"+id+"/pick", `{"model_id":"b"}`)
		h.clock.Advance(time.Second)
	}
	models := h.want(200, "", key, "GET", "/api/council/models", "")["models"].([]any)
	if len(models) != 2 || models[1].(map[string]any)["score"] != 71.0 {
		t.Errorf("%v", models)
	}
	changes := h.want(200, "", key, "GET", "/api/council/reliability?model_id=b", "")["changes"].([]any)
	if len(changes) != 1 || changes[0].(map[string]any)["score_after"] != 71.0 {
		t.Errorf("%v", changes)
	}
	found := h.want(200, "", key, "GET", "/api/council/analytics", "")
	if found["picks"] != 3.0 || found["levels"].([]any)[0].(map[string]any)["disputes"] != 3.0 {
		t.Errorf("%v", found)
	}
	domains := h.want(200, "", key, "GET", "/api/council/domains", "")
	if len(domains["domains"].([]any)) != 10 || len(domains["candidates"].([]any)) != 1 {
		t.Errorf("%v", domains)
	}
	h.want(400, "invalid-request", key, "GET", "/api/council/analytics?since=yesterday", "")
}
