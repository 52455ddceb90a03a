package guard

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files"
	"gatehouse/core/vault"
)

// writes is a call of Write or Edit in a vault, with its tool.
func (s *station) writes(name, input string) (*vault.Vault, tool.Tool, *tool.Call) {
	s.t.Helper()
	v, err := vault.Open(filepath.Join(s.t.TempDir(), "vault"))
	s.ok(err)
	s.t.Cleanup(func() { _ = v.Close() })
	dir, err := v.Dir("")
	s.ok(err)
	s.ok(os.WriteFile(filepath.Join(v.Path(), "plan.md"), []byte("Buy tea.\n"), 0o600))
	list := files.New()
	x := list[slices.IndexFunc(list, func(x tool.Tool) bool { return x.Name == name })]
	all := func(string) bool { return true }
	c := &tool.Call{ID: "call", Input: json.RawMessage(input), Turn: &tool.Turn{User: 1, Trust: core.Full, Vault: v, Dir: dir, MayRead: all, MayWrite: all}}
	c.Access, err = x.Touches(c.Turn, c.Input)
	s.ok(err)
	return v, x, c
}

func (s *station) allowCall(x tool.Tool, c *tool.Call) <-chan verdict {
	out := make(chan verdict, 1)
	go func() {
		d, err := s.guard.Allow(ctx, ownersTurn, x, c, func(e core.Event) { s.events <- e }, func(on bool) { s.slots <- on })
		out <- verdict{d, err}
	}()
	return out
}

const editPlan = `{"file_path":"plan.md","old_string":"tea","new_string":"coffee"}`

func TestAnAskOfAFileChangeCarriesItsDiff(t *testing.T) {
	s := newStation(t)
	_, edit, call := s.writes("Edit", editPlan)
	done := s.allowCall(edit, call)
	r := s.asked()
	waits, err := s.guard.Pending(ctx, 10)
	s.ok(err)
	if len(waits) != 1 || waits[0].Diff == nil || waits[0].Diff.Path != "plan.md" || waits[0].Diff.Unified() != "@@ -1,1 +1,1 @@\n-Buy tea.\n+Buy coffee.\n" {
		t.Fatalf("%+v", waits)
	}
	if b, err := core.EncodeEvent(r); err != nil || strings.Contains(string(b), "coffee") { // the run's stream is its user's, who may not read every file that is asked about
		t.Errorf("%s %v", b, err)
	}
	s.ok(s.guard.Grant(ctx, r.ID, "", owner))
	if v := <-done; v.err != nil || v.d.Verdict != permission.Allow || v.d.Shown == "" {
		t.Errorf("%+v", v)
	}
}

func TestAnApprovedCallIsNotMadeWhenItsFileChangedSince(t *testing.T) {
	s := newStation(t)
	v, edit, call := s.writes("Edit", editPlan)
	done := s.allowCall(edit, call)
	r := s.asked()
	s.ok(os.WriteFile(filepath.Join(v.Path(), "plan.md"), []byte("Never buy tea.\n"), 0o600))
	s.ok(s.guard.Grant(ctx, r.ID, "", owner))
	if got := <-done; got.err != nil || got.d.Verdict != permission.Deny || got.d.Rule != permission.RuleChanged || !strings.Contains(got.d.Text, "changed after") {
		t.Errorf("%+v", got)
	}
}

// What was approved is the input that was shown: another one, in the call or with the
// ask, is not what anyone approved.
func TestAnApprovalIsForTheInputThatWasShown(t *testing.T) {
	t.Run("of the call", func(t *testing.T) {
		s := newStation(t)
		_, edit, call := s.writes("Edit", editPlan)
		done := s.allowCall(edit, call)
		r := s.asked()
		copy(call.Input, strings.Replace(editPlan, "coffee", "poison", 1))
		s.ok(s.guard.Grant(ctx, r.ID, "", owner))
		if got := <-done; got.err != nil || got.d.Verdict != permission.Deny || got.d.Rule != permission.RuleChanged {
			t.Errorf("%+v", got)
		}
	})
	t.Run("with the ask", func(t *testing.T) {
		s := newStation(t)
		_, edit, call := s.writes("Edit", editPlan)
		done := s.allowCall(edit, call)
		r := s.asked()
		s.ok(s.db.Tx(ctx, func(tx *store.Tx) error {
			a, err := s.store.ByID(ctx, tx, r.ID)
			if err != nil {
				return err
			}
			_, err = s.store.Amend(ctx, tx, r.ID, strings.Replace(a.Payload, `"input":"`, `"input":"0`, 1))
			return err
		}))
		s.ok(s.guard.Grant(ctx, r.ID, "", owner))
		if got := <-done; got.err != nil || got.d.Verdict != permission.Deny || got.d.Rule != permission.RuleChanged {
			t.Errorf("%+v", got)
		}
	})
}

func TestAnAskSaysWhyItsChangeCannotBeShown(t *testing.T) {
	s := newStation(t)
	_, edit, call := s.writes("Edit", `{"file_path":"plan.md","old_string":"beer","new_string":"coffee"}`)
	done := s.allowCall(edit, call)
	r := s.asked()
	waits, err := s.guard.Pending(ctx, 10)
	s.ok(err)
	if len(waits) != 1 || waits[0].Diff == nil || !strings.Contains(waits[0].Diff.Problem, "old_string is not in the file") {
		t.Errorf("%+v", waits)
	}
	s.ok(s.guard.Deny(ctx, r.ID, owner))
	<-done
}
