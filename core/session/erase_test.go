package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// whole is what lies in the vault of a session.
func (h *house) whole(id string) string {
	h.t.Helper()
	files, err := h.vault.FindTranscripts(id)
	if err != nil || len(files) != 1 {
		h.t.Fatal(files, err)
	}
	b, err := os.ReadFile(filepath.Join(h.vault.Root().Name(), files[0]))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

func (h *house) redact(id string, runs ...string) (int, bool) {
	h.t.Helper()
	r, err := h.Redact(id, runs)
	if err != nil {
		h.t.Fatal(err)
	}
	n, ok, err := r.Keep()
	if err != nil {
		h.t.Fatal(err)
	}
	return n, ok
}

// A summary of a time in which a forgotten person has spoken tells of them, and
// nobody can say where: it goes as a whole. What was summed up before they came,
// and what others have said, stays.
func TestASummaryOfAForgottenPersonsTimeGoesWithThem(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	say := func(run, text string) {
		t.Helper()
		if err := c.Append(run, 0, user(text), answer("answer to "+text)); err != nil {
			t.Fatal(err)
		}
	}
	sum := func(text string) {
		t.Helper()
		if err := c.Compact(text, 2); err != nil {
			t.Fatal(err)
		}
	}
	say("r1", "about gardens")
	say("r2", "about weather")
	sum("they spoke about gardens before anybody came")
	say("r3", "xyzzy is what I want")
	say("r4", "about bread")
	sum("somebody wants xyzzy")
	say("r5", "about tea")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n, ok := h.redact(sess.ID, "r3", "r99"); n != 1 || !ok {
		t.Errorf("%d runs, %v", n, ok)
	}
	text := h.whole(sess.ID)
	for word, want := range map[string]bool{"xyzzy": false, "anybody came": true, "about bread": true, "about tea": true, "somebody spoke who was forgotten": true, "isCompactSummary": true} {
		if strings.Contains(text, word) != want {
			t.Errorf("%q is there: %v", word, !want)
		}
	}
	c = h.open(h.Store, sess)
	defer c.Close()
	past, _, err := c.History(100_000)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range past {
		said = append(said, m.Blocks[0].Text)
	}
	all := strings.Join(said, "|")
	if len(past) == 0 || !past[0].Summary || !strings.Contains(all, "somebody spoke who was forgotten") || !strings.Contains(all, "about bread") || !strings.HasSuffix(all, "answer to about tea") {
		t.Errorf("the model is told %q", all)
	}
	if n, ok := h.redact(sess.ID, "r3"); n != 0 || !ok || h.whole(sess.ID) != text {
		t.Errorf("a second time: %d %v", n, ok)
	}
}

// The sentence that stands where words were does not keep other words from going.
func TestWhoeverSaysTheSentenceOfErasureIsErasedToo(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	if err := c.Append("r1", 0, user("[erased: this person was forgotten] said xyzzy"), answer("xyzzy")); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n, _ := h.redact(sess.ID, "r1"); n != 1 || strings.Contains(h.whole(sess.ID), "xyzzy") {
		t.Errorf("%d: %s", n, h.whole(sess.ID))
	}
}

// What is written into a session while it is redacted is not lost: nothing is
// changed, and it is to be done again.
func TestARedactionLosesNothingThatWasSaidConcurrently(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	if err := c.Append("r1", 0, user("xyzzy"), answer("ok")); err != nil {
		t.Fatal(err)
	}
	r, err := h.Redact(sess.ID, []string{"r1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Append("r2", 0, user("about bread"), answer("ok")); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := r.Keep(); ok || err != nil || !strings.Contains(h.whole(sess.ID), "about bread") {
		t.Errorf("%v %v", ok, err)
	}
	if n, ok := h.redact(sess.ID, "r1"); n != 1 || !ok || !strings.Contains(h.whole(sess.ID), "about bread") || strings.Contains(h.whole(sess.ID), "xyzzy") {
		t.Errorf("again: %d %v %s", n, ok, h.whole(sess.ID))
	}
	dir, err := os.ReadDir(filepath.Dir(filepath.Join(h.vault.Root().Name(), mustOne(t, h, sess.ID))))
	if err != nil || len(dir) != 1 {
		t.Errorf("left behind: %v %v", dir, err)
	}
}

// A transaction of several may be tried twice: what is put in its place in one
// says the second time what it said the first.
func TestARedactionThatIsKeptTwiceSaysTheSame(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	if err := c.Append("r1", 0, user("xyzzy"), answer("ok")); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := h.Redact(sess.ID, []string{"r1"})
	if err != nil {
		t.Fatal(err)
	}
	for try := 1; try <= 2; try++ {
		if n, ok, err := r.Keep(); n != 1 || !ok || err != nil || strings.Contains(h.whole(sess.ID), "xyzzy") {
			t.Errorf("try %d: %d %v %v %s", try, n, ok, err, h.whole(sess.ID))
		}
	}
}

func mustOne(t *testing.T, h *house, id string) string {
	t.Helper()
	files, err := h.vault.FindTranscripts(id)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	return files[0]
}
