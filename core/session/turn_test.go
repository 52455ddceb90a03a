package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/transcript"
)

func TestATurnIsFoundAsItWasSaidAlsoBehindASummary(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	for n := range 10 {
		err := c.Append(fmt.Sprint("r", n), 0, user(fmt.Sprint("q", n)), call("a"), said(result("a", "seen")), answer(strings.Repeat("w", 30_000)+fmt.Sprint(n)))
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := c.History(100_000); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Compact("much was said", 8), c.Sync(), c.Close()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 4, 9} {
		got, err := h.another().Turn(context.Background(), sess, transcript.LineID(fmt.Sprint("r", n), 0))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{fmt.Sprint("u:q", n), "a:hm", "a:", "u:seen", "a:" + strings.Repeat("w", 30_000) + fmt.Sprint(n)}
		if d := cmp.Diff(want, texts(got)); d != "" {
			t.Errorf("turn %d: %s", n, d)
		}
	}
	for _, id := range []string{transcript.LineID("r10", 0), "", "nonsense"} {
		if _, err := h.Turn(context.Background(), sess, id); core.KindOf(err) != core.NotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := h.Turn(context.Background(), h.resolve(chat(6, "c2")).Session, transcript.LineID("r1", 0)); core.KindOf(err) != core.NotFound {
		t.Errorf("another's turn: %v", err)
	}
}
