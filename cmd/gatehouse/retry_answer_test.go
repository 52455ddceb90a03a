package main

import (
	"testing"

	"gatehouse/core/llm/llmtest"
)

// The owner may have a guest's message answered again; it is the guest's all
// the same. Else their words would run at the owner's trust. And it is answered
// again once, however often the button is pressed before it is gone.
func TestAGuestsMessageIsAnsweredAgainInTheirNameWhoeverPresses(t *testing.T) {
	t.Parallel()
	s := newScript(t, "telegram", nil)
	for _, step := range []string{
		"olga owns", "ada joins", "group Garden: olga ada", "olga in Garden: /enable vault", "bot in Garden: This group is enabled",
	} {
		s.step(step)
	}
	s.model.Script(llmtest.Reply{Text: []string{"First."}})
	s.step(s.fill("ada in Garden: {bot} what is there?"))
	s.step("bot in Garden: First.")
	s.step("quiet")
	sc, room, _ := s.room("Garden")
	all := sc.read(room)
	last := all[len(all)-1]
	for range 3 {
		if err := sc.press("olga", room, last.id, 0); err != nil {
			break // it is gone already
		}
	}
	s.step("bot in Garden: " + fakeSays)
	s.step("quiet")
	var rows []struct {
		Sender string `db:"sender"`
		User   int64  `db:"user_id"`
		First  int64  `db:"first_user"`
		Trust  string `db:"trust"`
		First2 string `db:"first_trust"`
	}
	err := s.w.app.db.Select(t.Context(), &rows, `SELECT i.sender, r.user_id, f.user_id AS first_user, i.trust, o.trust AS first_trust FROM inbox i JOIN runs r ON r.id = i.run
		JOIN runs f ON 'again:' || f.id = i.update_id JOIN inbox o ON o.run = f.id WHERE i.update_id LIKE 'again:%'`)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 {
		t.Fatalf("answered again %d times", len(rows))
	}
	if r := rows[0]; r.Sender != s.ids["ada@telegram"] || r.User != r.First || r.Trust != r.First2 {
		t.Errorf("run again as %+v", r)
	}
}
