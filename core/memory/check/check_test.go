package check

import (
	"fmt"
	"strings"
	"testing"
)

func TestCompile(t *testing.T) {
	for text, want := range map[string]string{
		"Always answer in German.":                         "[{language de 0}]",
		"Antworte bitte immer auf Französisch":             "[{language fr 0}]",
		"Don't answer in German":                           "[]",
		"Keep answers under five lines":                    "[{length lines 5}]",
		"Höchstens drei Sätze bitte":                       "[{length sentences 3}]",
		"In at most 50 words":                              "[{length words 50}]",
		"Never use emojis.":                                "[{format no emojis 0}]",
		"Bitte keine Aufzählungen und keine Überschriften": "[{format no bullets 0} {format no headings 0}]",
		"I like emojis":                                    "[]",
		`Never say "utilize".`:                             "[{not_contain utilize 0}]",
		`Schreib nie „Kunde“`:                              "[{not_contain Kunde 0}]",
		`Use "colour" instead of "color"`:                  "[{not_contain color 0}]",
		`Always end with "Regards, J"`:                     "[{contain Regards, J 0}]",
		"When you write emails, never use emojis":          "[]",
		"The capital of Australia is Canberra":             "[]",
	} {
		if got := fmt.Sprint(Compile(text)); got != want {
			t.Errorf("Compile(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestMet(t *testing.T) {
	english, german := "The answer is that it was built in the year 1889 for the fair.", "Der Turm wurde im Jahr 1889 für die Ausstellung gebaut, und das ist nicht die ganze Geschichte."
	for _, c := range []struct {
		wish, answer string
		want         bool
	}{
		{"Always answer in German.", german, true},
		{"Always answer in German.", english, false},
		{"Always answer in German.", "1889.", true}, // too short to tell
		{"Always answer in English.", "```\nder die das und ist nicht ein\n```\n" + english, true},
		{"Under two sentences", "One. Two. Three.", false},
		{"Under two sentences", "One of them. Two.", true},
		{"At most 3 words", "one two three four", false},
		{"At most two lines", "a\n\nb\n", true},
		{"At most two lines", "a\nb\nc", false},
		{"Never use emojis", "Fine 🙂", false},
		{"Never use emojis", "Fine: ä € ✗"[:len("Fine: ä € ")], true},
		{"No bullet points", "- a\n- b", false},
		{"No bullet points", "a - b", true},
		{"No tables", "| a | b |\n|---|---|\n| 1 | 2 |", false},
		{"No headings", "# Title\ntext", false},
		{`Never say "use"`, "It is useful.", true},
		{`Never say "use"`, "Use it.", false},
		{`Always end with "Regards"`, "Hello. Regards", true},
		{`Always end with "Regards"`, "Hello.", false},
	} {
		checks := Compile(c.wish)
		if len(checks) != 1 {
			t.Fatalf("%q compiles to %v", c.wish, checks)
		}
		if got := len(Broken(checks, c.answer)) == 0; got != c.want {
			t.Errorf("%q is met by %q: %v, want %v", c.wish, c.answer, got, c.want)
		}
	}
}

// An answer that has the characters of a word everywhere is read once.
func TestALongAnswerIsReadWithoutACopyForEachOccurrence(t *testing.T) {
	checks, answer := Compile(`Never say "x"`), strings.Repeat("xx", 20_000)
	if len(checks) != 1 {
		t.Fatal(checks)
	}
	if n := testing.AllocsPerRun(1, func() { checks[0].Met(answer) }); n > 100 {
		t.Errorf("%.0f allocations", n)
	}
}

func TestTopicsOfChecks(t *testing.T) {
	a, b := Compile("Always answer in German."), Compile("Always answer in English.")
	if a[0].Topic() != b[0].Topic() || a[0].Topic() == "" {
		t.Errorf("%q, %q", a[0].Topic(), b[0].Topic())
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(`Never say "x" in German, at most 3 words`, "a b c")
	f.Fuzz(func(t *testing.T, wish, answer string) {
		checks := Compile(wish)
		if len(checks) > maxChecks {
			t.Errorf("%d checks", len(checks))
		}
		for _, c := range Broken(checks, answer) {
			if c.Value == "" || c.Kind == Length && c.Limit < 1 {
				t.Errorf("%+v", c)
			}
		}
	})
}

func TestTextsAboutLengthAreKnown(t *testing.T) {
	for text, want := range map[string]bool{"Be brief.": true, "Please keep answers short": true, "At most three sentences.": true, "Fass dich kurz.": true, "Antworte nie ausführlich": true,
		"Never use emojis.": false, "Always be kind.": false, "No headlines.": false, "Antworte auf Deutsch": false} {
		if got := Lengthy(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
