package transcript

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// Long transcripts are read whole by so many at once and no more: whoever comes
// then waits, as long as they want to, and short reads wait for nobody.
func TestLongTranscriptsAreReadByFewAtOnce(t *testing.T) {
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	s := New(Options{Vault: v})
	sess := Session{ID: uuid.NewString(), User: 5, TrustLevel: core.Vault}
	c, err := s.Open(sess)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		text := strings.Repeat(fmt.Sprint("words of ", i, " "), 10_000)
		if err := c.Append(fmt.Sprint("r", i), 0, Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: text}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	page, err := s.Page(t.Context(), sess, PageQuery{Limit: 1})
	if err != nil || len(page.Messages) != 1 {
		t.Fatal(page, err)
	}
	first := func(ctx context.Context) error {
		_, err := s.Page(ctx, sess, PageQuery{Before: page.Messages[0].Line(), Limit: 200})
		return err
	}
	whole := func(ctx context.Context) error { return s.Whole(ctx, sess, func([]Message, bool) {}) }
	for range largeReads {
		s.large <- struct{}{}
	}
	gone, leave := context.WithCancelCause(t.Context())
	cut := errors.New("the reader is gone")
	leave(cut)
	for name, read := range map[string]func(context.Context) error{"a page": first, "an export": whole} {
		if err := read(gone); !errors.Is(err, cut) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s was read beside as many as may: %v", name, err)
		}
	}
	if _, err := s.Page(gone, sess, PageQuery{Limit: 1}); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a short read waits: %v", err)
	}
	<-s.large
	for name, read := range map[string]func(context.Context) error{"a page": first, "an export": whole} {
		for range 2 { // each gives its place back
			if err := read(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n := len(s.large); n != largeReads-1 {
		t.Errorf("%d places are taken", n)
	}
}

// What a conversation has long had is not copied for each message that follows.
func TestHistory_OfALongConversationAllocatesLittle(t *testing.T) {
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	c, err := New(Options{Vault: v}).Open(Session{ID: uuid.NewString(), User: 5, TrustLevel: core.Vault})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const turns, times = 300, 20
	for i := range turns {
		for n, role := range []string{"user", "assistant"} {
			if err := c.Append(fmt.Sprint("r", i), n, Message{Role: role, Blocks: []core.Block{{Type: "text", Text: "hello"}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if past, _, err := c.History(1 << 20); err != nil || len(past) != 2*turns {
			t.Fatal(len(past), err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 32<<10 {
		t.Errorf("%d bytes for each of %d messages", each, 2*turns)
	}
}
