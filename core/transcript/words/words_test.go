package words_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/core/transcript/words"
)

func TestWordsAreFoldedAlikeInTextAndQuestion(t *testing.T) {
	for text, want := range map[string]string{
		"Green TEA, please!":            "green tea please",
		"Café CREME bru\u0302le\u0301e": "cafe creme brulee",
		"foo-bar_baz.go:12":             "foo bar baz go 12",
		"我喜欢绿茶 tea":                     "我 喜 欢 绿 茶 tea",
		"ﬁne № ½ Ａ１":                    "fine 12 a1",
		"한국어 한국어":                       "한국어 한국어",
		"हिन्दी":                        "हिन्दी",
		"a\x00b \xff\" OR NEAR(c)*":     "a b or near c",
		"":                              "",
		"!!! \u0301":                    "",
	} {
		if got := words.Index(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := words.Index(strings.Repeat("x", 500)); got != strings.Repeat("x", 64) {
		t.Errorf("a long word is kept as %q", got)
	}
	if got := words.Starts("Green tea a"); got != "gr gre gree te" {
		t.Errorf("beginnings: %q", got)
	}
}

func TestAQuestionFindsWhatHasAllItsWords(t *testing.T) {
	const text = "Yesterday we bought green tea.\nIt came from Uji-shi: 緑茶です"
	for q, want := range map[string]bool{
		"tea": true, "TEA green": true, "gréen": true, "uji-shi": true, "shi-uji": false, "shi uji": true, "緑茶": true, "茶緑": false,
		"tea coffee": false, "te": false, "gree tea": false,
	} {
		if _, _, got := words.Parse(q).Find(text); got != want {
			t.Errorf("%q: %t", q, got)
		}
	}
	begins := words.Parse("green te")
	begins.Begins = true
	if from, to, ok := begins.Find(text); !ok || text[from:to] != "green" {
		t.Errorf("%q %t", text[from:to], ok)
	}
	if q := words.Parse(" \"' * "); len(q.Terms) != 0 {
		t.Errorf("%v", q)
	}
	if q := words.Parse(strings.Repeat("a b c d e f g ", 100) + "tea x1 x2 x3 x4 x5 x6 x7 x8 x9 x10"); len(q.Terms) != 16 {
		t.Errorf("%d terms", len(q.Terms))
	}
}

func TestAnExcerptShowsWhatWasFound(t *testing.T) {
	long := strings.Repeat("before it ", 50) + "the GREEN\n\ttea\x1b[0m stands" + strings.Repeat(" and behind it", 50)
	got, ok := words.Parse("tea").Excerpt(long, 60)
	if !ok || !strings.Contains(got, "the GREEN tea[0m stands and") || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") || utf8.RuneCountInString(got) > 62 {
		t.Errorf("%q %t", got, ok)
	}
	if got, ok := words.Parse("tea").Excerpt("green tea", 60); !ok || got != "green tea" {
		t.Errorf("%q %t", got, ok)
	}
	if _, ok := words.Parse("coffee").Excerpt(long, 60); ok {
		t.Error("found what is not there")
	}
}

// FuzzQuestion: whatever is asked of whatever text, nothing breaks, the words
// of a text are found in it, and they are words only.
func FuzzQuestion(f *testing.F) {
	f.Add(`"green" OR tea*`, "Green tea")
	f.Add("a\x00b", "\xff\xfe İ ﬁ")
	f.Add("NEAR(a b) -c ^d : {e}", "ΑΣ Σ ς")
	f.Fuzz(func(t *testing.T, asked, text string) {
		for tok := range words.Tokens(text) {
			if tok.Start < 0 || tok.End > len(text) || tok.Start >= tok.End || tok.Text == "" || len(tok.Text) > 64 || !utf8.ValidString(tok.Text) ||
				strings.ContainsAny(tok.Text, "\x00\"'*^:{}()-+ ") {
				t.Fatalf("%q: %+v", text, tok)
			}
			if _, _, ok := words.Parse(text[tok.Start:tok.End]).Find(text); !ok {
				t.Fatalf("%q is not found in %q", tok.Text, text)
			}
		}
		q := words.Parse(asked)
		if ex, ok := q.Excerpt(text, 40); ok && (!utf8.ValidString(ex) || strings.ContainsAny(ex, "\n\r\x00\x1b") || utf8.RuneCountInString(ex) > 4*40+4) {
			t.Fatalf("%q in %q: %q", asked, text, ex)
		}
	})
}

func TestExcerptOfAny_IsAroundTheFirstTermThatTheTextHas(t *testing.T) {
	text := "The gutter was repaired, and then " + strings.Repeat("many days went by until ", 20) + "the roof leaked again."
	for typed, want := range map[string]string{
		"nothing roof gutter": "roof leaked", // the first of the query, not of the text
		"nothing gutter":      "The gutter was",
		"nothing":             "The gutter was", // its beginning
		"":                    "The gutter was",
	} {
		if got := words.Parse(typed).ExcerptOfAny(text, 60); !strings.Contains(got, want) || len(got) > 80 {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
	q := words.Parse("gut")
	if q.Exclude("roof"); q.ExcerptOfAny(text[300:], 60) == "" {
		t.Error("no excerpt of a text with what is excluded")
	}
	if q.Begins = true; !strings.Contains(q.ExcerptOfAny("x "+text, 60), "gutter") {
		t.Error("the last term is no prefix")
	}
}
