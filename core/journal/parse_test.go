package journal

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// asShown is the entry of the format's description.
const asShown = `# para:abc123def456 10:30 AM

Walked to the coffee shop this morning. Had a great idea about
the project architecture...

## Images
![Morning sky](../assets/2026-01-28/photo-10-30-am.jpg)

## Audio
- Duration: 2:30
- Path: ../assets/2026-01-28/audio-10-30-am.m4a
`

func TestParseReadsTheDescribedFormat(t *testing.T) {
	t.Parallel()
	f := parse([]byte(asShown))
	if len(f.sections) != 1 {
		t.Fatalf("%d sections", len(f.sections))
	}
	e := f.sections[0].entry(day)
	if e.ID != "abc123def456" || e.Time != "10:30 AM" || e.Text != "Walked to the coffee shop this morning. Had a great idea about\nthe project architecture..." {
		t.Errorf("%+v", e)
	}
	if !slices.Equal(e.Images, []Image{{"Morning sky", "../assets/2026-01-28/photo-10-30-am.jpg"}}) || !slices.Equal(e.Audio, []Audio{{"2:30", "../assets/2026-01-28/audio-10-30-am.m4a"}}) {
		t.Errorf("%+v, %+v", e.Images, e.Audio)
	}
}

func TestParseFindsHeadingsAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line     string
		id, when string
		none     bool
	}{
		{line: "# para:abc123def456 10:30 AM", id: "abc123def456", when: "10:30 AM"},
		{line: "# para:abc123 22:15", id: "abc123", when: "22:15"},
		{line: "# para:abc12345", id: "abc12345"},
		{line: "#  para:abc12345\t9:05pm  A walk", id: "abc12345", when: "9:05pm"},
		{line: "# 10:30 AM", when: "10:30 AM"},
		{line: "# para: 10:30 AM", when: "10:30 AM"},
		{line: "# 7:05 Tea", when: "7:05"},
		{line: "# para:abc1234 10:30 AM", none: true},
		{line: "# para:ABC123def456 10:30 AM", none: true},
		{line: "## para:abc123def456 10:30 AM", none: true},
		{line: " # para:abc123def456 10:30 AM", none: true},
		{line: `\# para:abc123def456 10:30 AM`, none: true},
		{line: "#para:abc123def456", none: true},
		{line: "# A title", none: true},
		{line: "# 1.20 Release", none: true},
		{line: "# 29:99", none: true},
		{line: "# para:abc123def456x", none: true},
	} {
		f := parse([]byte("head\n" + c.line + "\r\ntext\n"))
		switch {
		case c.none && len(f.sections) > 0:
			t.Errorf("%q is a heading", c.line)
		case !c.none && len(f.sections) != 1:
			t.Errorf("%q is none", c.line)
		case !c.none && (f.sections[0].id != c.id || f.sections[0].when != c.when):
			t.Errorf("%q: id %q at %q", c.line, f.sections[0].id, f.sections[0].when)
		}
	}
}

func TestABlockWithOtherTextIsText(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"a\n\n## Images\nnot a picture", "a\n\n## Audio\n- Duration: long\n- Path: x", "## Images", "a\n## Audio\n", "a\n\n## Images\n![x](y)\n\nmore",
	} {
		f := parse([]byte("# para:abc123def456 10:30 AM\n\n" + body + "\n"))
		if e := f.sections[0].entry(day); e.Text != trimmed(body) || e.Images != nil || e.Audio != nil {
			t.Errorf("%q: %+v", body, e)
		}
	}
}

// hostile draws texts that look like the file's form.
func hostile() *rapid.Generator[string] {
	line := rapid.OneOf(
		rapid.SampledFrom([]string{"# para:abc123def456 10:30 AM", "# 10:30 AM", "## Images", "## Audio ", "![a](b)", "- Path: x", "- Duration: 1:00", "```", "---", "", " ", `\`, "# Title", "\ttea"}),
		rapid.StringMatching(`\\{0,3}#{0,2} ?(para:[a-z0-9]{5,12})?( ?[0-9]{1,2}:[0-9]{2})?( [AP]M)?`),
		rapid.StringMatching(`[ -~äß€😀]{0,20}`),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(t, "end"))
	})
}

func TestNoTextBecomesAnotherEntry(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f file
		var want []string
		for i := range rapid.IntRange(1, 4).Draw(t, "entries") {
			text, err := cleanText(hostile().Draw(t, "text"))
			if err != nil {
				t.Fatal(err)
			}
			var images []Image
			var audio []Audio
			if rapid.Bool().Draw(t, "image") {
				images = []Image{{"a sky", "assets/2026-01-28/photo-10-30-am.jpg"}}
			}
			if rapid.Bool().Draw(t, "audio") {
				audio = []Audio{{"2:30", "assets/2026-01-28/audio-10-30-am.ogg"}, {"", "assets/x.ogg"}}
			}
			f.add(section{raw: render(titleOf(fmt.Sprintf("abc123def%03d", i), morning), text, images, audio)})
			want = append(want, fmt.Sprint(text, images, audio))
		}
		again := parse(f.bytes())
		if len(again.sections) != len(want) {
			t.Fatalf("%d entries, want %d:\n%s", len(again.sections), len(want), f.bytes())
		}
		for i := range again.sections {
			if e := again.sections[i].entry(day); fmt.Sprint(e.Text, e.Images, e.Audio) != want[i] {
				t.Fatalf("entry %d is\n%q, want\n%q in\n%s", i, fmt.Sprint(e.Text, e.Images, e.Audio), want[i], f.bytes())
			}
		}
	})
}

func TestWhatIsNotChangedIsWrittenByteByByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(rapid.SampledFrom([]string{"", mark, "---\ndate: x\n---\n", "free \xff text\r\n"}).Draw(t, "head") + hostile().Draw(t, "text"))
		f := parse(data)
		if !bytes.Equal(f.bytes(), data) {
			t.Fatalf("%q became %q", data, f.bytes())
		}
		if len(f.sections) < 2 {
			return
		}
		i := rapid.IntRange(0, len(f.sections)-1).Draw(t, "changed")
		var others []string
		for j, s := range f.sections {
			if j != i {
				others = append(others, string(s.raw))
			}
		}
		f.rewrite(i, "new text", nil, nil)
		out := f.bytes()
		for _, o := range others {
			if !bytes.Contains(out, []byte(o)) {
				t.Fatalf("%q is gone from %q", o, out)
			}
		}
	})
}

func TestAnIDIsPutInTheHeadingAndNothingElseChanges(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"# 10:30 AM\ntext\n":                  "# para:zzz999zzz999 10:30 AM\ntext\n",
		"# 10:30 AM":                          "# para:zzz999zzz999 10:30 AM",
		"# para: 10:30 AM\r\ntext\r\n":        "# para:zzz999zzz999 10:30 AM\r\ntext\r\n",
		"# para:abc123 10:30 A walk\n\ntext":  "# para:zzz999zzz999 10:30 A walk\n\ntext",
		"# para:abc123def456\r\ntext":         "# para:zzz999zzz999\r\ntext",
		mark + "# 22:15 Tea\n# 22:16 Water\n": mark + "# para:zzz999zzz999 22:15 Tea\n# 22:16 Water\n",
	} {
		f := parse([]byte(in))
		f.number(0, "zzz999zzz999")
		if got := string(f.bytes()); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if again := parse(f.bytes()); again.sections[0].id != "zzz999zzz999" {
			t.Errorf("%q is not read again", f.bytes())
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{asShown, "# 10:30 AM\n", "# para: 1:00\n# para:abc123\n", mark + "# 1:00\r\n\\# 1:00", "\xff# 1:00\n## Audio\n- Path: x"} {
		f.Add([]byte(s), "text\n# para:abc123def456 1:00\n## Images")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		in := parse(data)
		if !bytes.Equal(in.bytes(), data) {
			t.Fatalf("%q became %q", data, in.bytes())
		}
		before := len(in.sections)
		for i := range in.sections {
			if e := in.sections[i].entry(day); !utf8.ValidString(e.Text) {
				t.Fatalf("text %q", e.Text)
			}
		}
		text, err := cleanText(text)
		if err != nil {
			return
		}
		in.add(section{raw: render(titleOf("zzz999zzz999", morning), text, nil, nil)})
		out := parse(in.bytes())
		if len(out.sections) != before+1 {
			t.Fatalf("%d entries became %d:\n%q", before, len(out.sections), in.bytes())
		}
		if e := out.sections[before].entry(day); e.Text != text {
			t.Fatalf("text %q, want %q", e.Text, text)
		}
	})
}
