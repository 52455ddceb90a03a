package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/store"
)

// A used-up budget is a friendly refusal before the model is asked, to that
// person alone.
func TestAUsedUpBudgetIsAFriendlyRefusalBeforeTheModelIsAsked(t *testing.T) {
	w, model := newModelWorld(t, func(c *configs.Config) { c.BudgetUserDay = values.Budget{Tokens: 60_000} })
	ada := w.guest("Ada")
	err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error { // she has used nearly all of it
		_, err := tx.Exec(t.Context(), `UPDATE usage SET input = 59900`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	bob := w.guest("Bob")
	asked := model.Total()
	if m := w.replies(ada, "second"); !strings.Contains(m.Text, "your budget for today (60000 tokens) is used up") || model.Total() != asked {
		t.Errorf("%q, %d calls of the model", m.Text, model.Total()-asked)
	}
	if m := w.replies(bob, "hello"); m.Text != fakeSays {
		t.Errorf("somebody else: %q", m.Text)
	}
	if n := w.metric("gatehouse_budget_refusals_total", "scope", "user"); n != 1 {
		t.Errorf("%v refusals counted", n)
	}
}

// With GUEST_MODEL guests are answered by that model, also when they ask for another.
func TestGuestsAreAnsweredByTheirOwnModel(t *testing.T) {
	w, model := newModelWorld(t, func(c *configs.Config) { c.GuestModel = "local/quote" })
	w.replies(w.guest("Ada"), "hello")
	if model.Total() != 0 {
		t.Errorf("a guest's message reached the owner's model")
	}
	secret, _, err := w.app.keys.Create(t.Context(), guestKey, cli)
	if err != nil {
		t.Fatal(err)
	}
	resp := w.open("POST", "/api/chat", map[string]any{"message": "hello", "model": fakeModel}, http.Header{"Authorization": {"Bearer " + secret}})
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if body := string(b); err != nil || model.Total() != 0 || !strings.Contains(body, "guests are answered by local/quote here") {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
	if m := w.replies(w.boss(), "hello"); m.Text != fakeSays {
		t.Errorf("the owner: %q", m.Text)
	}
}
