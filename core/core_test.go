package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
)

func TestTrustIsOrderedAndItsZeroValueIsAStranger(t *testing.T) {
	if core.Least(core.Full, core.Vault, core.Sandboxed) != core.Sandboxed || core.Least(core.Vault, core.Stranger) != core.Stranger {
		t.Error("the least of the levels is not the least")
	}
	var zero core.Trust
	if zero != core.Stranger || zero.String() != "" {
		t.Errorf("the zero value is %q", zero)
	}
	for _, bad := range []string{"", "Full", "root", "sandboxed "} {
		if _, err := core.ParseTrust(bad); core.KindOf(err) != core.Invalid {
			t.Errorf("ParseTrust(%q) = %v", bad, err)
		}
	}
	damaged := core.Full
	if err := damaged.Scan("fu11"); err != nil || damaged != core.Stranger {
		t.Errorf("a damaged row opens %v, %v", damaged, err)
	}
}

func TestAClockThatIsSharedAgreesWithTheServerWhereItIsFarFromIt(t *testing.T) {
	c := core.NewShared()
	for _, off := range []time.Duration{5 * time.Minute, -time.Hour, 2 * time.Second} {
		c.Agree(time.Now().Add(off))
		if d := time.Until(c.Now()) - off; d.Abs() > time.Second/4 {
			t.Errorf("after it was set by %v it is wrong by %v", off, d)
		}
	}
	if moved := c.Agree(c.Now().Add(time.Second / 5)); moved != 0 || time.Until(c.Now()) > 2*time.Second+time.Second/10 {
		t.Error("it moves by what an answer may take")
	}
	c.Agree(time.Now().Add(time.Hour))
	for what, at := range map[string]time.Time{"the machine": time.Now(), "a server": c.Now(), "one that was read again": time.Now().Round(0)} {
		if age := core.FileAge(c, at.Add(-time.Minute)); (age - time.Minute).Abs() > time.Second/4 {
			t.Errorf("a file of a minute ago, stamped by %s, is %v old", what, age)
		}
	}
	if at := core.FileTime(c, time.Now().Round(0)); c.Now().Sub(at).Abs() > time.Second/4 {
		t.Errorf("a file of now has the time %v", at)
	}
	if at := time.Now(); core.FileTime(core.System{}, at) != at {
		t.Error("the machine's own clock shows other times than its files")
	}
}

func TestStampsSortAsTimeDoes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 1000, time.FixedZone("x", 3600))
	early, late := core.Stamp(at), core.Stamp(at.Add(time.Microsecond))
	if !(early < late) || len(early) != len("2026-01-02T02:04:05.000001Z") || core.Stamp(time.Time{}) != "" {
		t.Errorf("%q, %q", early, late)
	}
	if back, err := core.ParseStamp(early); err != nil || !back.Equal(at.Truncate(time.Microsecond)) {
		t.Errorf("%v, %v", back, err)
	}
}

func TestOnlyErrorsMeantToBeShownAreShown(t *testing.T) {
	inner := errors.New("secret detail")
	shown := fmt.Errorf("op: %w", &core.Error{Kind: core.Conflict, Text: "somebody was first", Err: inner})
	if core.KindOf(shown) != core.Conflict || core.TextOf(shown) != "somebody was first" || !errors.Is(shown, inner) {
		t.Errorf("kind %v, text %q", core.KindOf(shown), core.TextOf(shown))
	}
	if core.TextOf(inner) != "internal error" || core.TextOf(&core.Error{Text: "ours", Err: inner}) != "internal error" {
		t.Error("an internal error's text would be shown")
	}
}

func TestAnEventIsOneLineOfJSONWithItsTypeFirst(t *testing.T) {
	for _, e := range []core.Event{core.Session{ID: "s"}, core.TextDelta{Content: "a\nb\u2028"}, core.Failed{Code: "x"}, core.MessageStop{}} {
		b, err := core.EncodeEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil || m["type"] != e.EventType() || strings.ContainsAny(string(b), "\r\n") {
			t.Errorf("%s: %v", b, err)
		}
		if core.EncodedType(b) != e.EventType() {
			t.Errorf("EncodedType(%s) = %q", b, core.EncodedType(b))
		}
	}
}

// Pieces of an answer are written without encoding/json, and read the same.
func FuzzAPieceOfTextIsWrittenAsJSON(f *testing.F) {
	for _, s := range []string{"", "hello ", "Привет, 世界 👩", `a "b" \ c`, "<b> & </b>", "\xff", "a\ufffdb", "\u2028", "\n\t\x00\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, e := range []core.Event{core.TextDelta{Content: s}, core.Thinking{Content: s}} {
			got, err := core.EncodeEvent(e)
			if err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"type":"` + e.EventType() + `",` + string(body[1:]); string(got) != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

func FuzzCleanName(f *testing.F) {
	for _, s := range []string{"Ada", "\u202eevil", "a\x00b\nc", strings.Repeat("x y ", 100), "<b>", "\xff\xfe", "👩‍👩‍👧"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := core.CleanName(s)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > core.MaxName+1 || strings.TrimSpace(got) != got {
			t.Errorf("CleanName(%q) = %q", s, got)
		}
		for _, r := range got {
			if written := r == '\u200c' || r == '\u200d' || r >= 0xe0020 && r <= 0xe007f; unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && !written {
				t.Errorf("CleanName(%q) keeps %U", s, r)
			}
		}
		if core.CleanName(got) != strings.TrimSpace(got) && !strings.HasSuffix(got, "…") {
			t.Errorf("cleaning twice differs: %q, %q", got, core.CleanName(got))
		}
	})
}

func FuzzCutRunes(f *testing.F) {
	f.Add("héllo", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < 0 || !utf8.ValidString(s) {
			return
		}
		got := core.CutRunes(s, n)
		if !utf8.ValidString(got) || len(got) > max(n, 0)+len("…") {
			t.Errorf("CutRunes(%q, %d) = %q", s, n, got)
		}
	})
}

func TestTheEndOfALaneIsNotOfItsChat(t *testing.T) {
	lane := core.LaneOf(core.Address{Bot: "bot", Chat: "1#shows/2"})
	for _, end := range []string{"", core.ControlLane, core.ShowsLane} {
		if got := core.LaneEnd(lane + end); got != end {
			t.Errorf("%s%s ends with %q", lane, end, got)
		}
	}
}
