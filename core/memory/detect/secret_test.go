package detect

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSecretsAreRecognized(t *testing.T) {
	for _, text := range []string{
		"my key is sk-ant-api03-abcdefghijklmnop", "use AKIAIOSFODNN7EXAMPLE for S3", "token ghp_abcdefghijklmnopqrst1234", "-----BEGIN RSA PRIVATE KEY-----",
		"the password is hunter2", "Mein Passwort lautet geheim123", "always use the password: swordfish", "Das Kennwort ist rosenkohl",
		"the code is 483920", "Meine PIN ist 4711", "TAN 123456", "my card is 4111 1111 1111 1111", "IBAN DE89 3704 0044 0532 0130 00",
		"my card is 4111 1111 1111 1111 12 27", "4111.1111.1111.1111", "4111\u00a01111\u00a01111\u00a01111 737", "card 4111-1111-1111-1111-123", "remember my password hunter2!", "Passwort geheim99",
		"remember 5f4dcc3b5aa765d61d8327deb882cf99", "123456789:AAExampleExampleExampleExampleExample", "use aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1 as usual",
	} {
		if _, ok := Secret(text); !ok {
			t.Errorf("not recognized: %s", text)
		}
	}
	for _, text := range []string{
		"Always use metric units.", "My daughter was born on 12 May 2019.", "Use the function computeTheIncludeUtilityOfEntries.", "Never show a password in logs.",
		"Call me at 4711 Main Street", "The release is 2026.11.27-rc1", "I prefer code without comments", "Die Rechnung hat die Nummer 20260117", "Passwörter nie im Klartext zeigen",
		"A password needs a length of 12", "use the password field, not the token", "the years 2019 2020 2021 2022 were good",
	} {
		if name, ok := Secret(text); ok {
			t.Errorf("%s taken for %s", text, name)
		}
	}
}

func TestExplicitPrefixIsAlwaysACorrection(t *testing.T) {
	for _, c := range []struct{ text, want string }{{"correction: The capital is Canberra", "The capital is Canberra"}, {"Korrektur: ist das so?", "ist das so?"}, {"CORRECTION:   thanks", "thanks"}} {
		if r := Detect(Message{Text: c.text}); r.Layer != Explicit || r.Text != c.want {
			t.Errorf("%q: %+v", c.text, r)
		}
	}
	if r := Detect(Message{Text: "correction:  ", Answer: "x"}); r.Layer != None {
		t.Errorf("%+v", r)
	}
}

func TestWithoutAnAnswerNothingIsImplied(t *testing.T) {
	for _, text := range []string{"No, the capital of Australia is Canberra.", "Always use metric units.", "not 12, 14"} {
		if r := Detect(Message{Text: text}); r.Layer != None {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

func TestQuotedTextIsNotTheWriters(t *testing.T) {
	for _, text := range []string{"> No, that's wrong.\nCan you explain this?", "```\nalways use tabs, not spaces\n```\nWhat does it do?", "He wrote “from now on always answer in rhymes”."} {
		if r := Detect(Message{Text: text, Answer: "Here it is."}); r.Layer != None {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

func TestScopeAndDomain(t *testing.T) {
	for _, c := range []struct {
		text   string
		scope  Scope
		domain string
	}{
		{"From now on use tabs in the code", Global, "code"}, {"In this conversation always answer in German", Conversation, "general"},
		{"In diesem Projekt verwenden wir pnpm statt npm", Project, "code"}, {"No, the dose of the medicine is 5 mg", Global, "medical"},
	} {
		r := Detect(Message{Text: c.text, Answer: "ok"})
		if r.Scope != c.scope || r.Domain != c.domain {
			t.Errorf("%q: %s, %s", c.text, r.Scope, r.Domain)
		}
	}
}

func TestImplicitScoreGoldenValues(t *testing.T) {
	const answer = "The tower has a height of 324 metres."
	for _, c := range []struct {
		text string
		want float64
	}{
		{"no tower height", .40 + .20 + .30}, {"no, the tower height", .40 + .20 + .30}, {"tower height", .20 + .30}, {"tower bridge", .20 + .15}, {"sunshine", .20},
		{strings.Repeat("sunshine ", 16), 0}, {strings.Repeat("sunshine ", 15), .20}, {"", 0},
	} {
		folded := Fold(c.text)
		if got := signs(folded).score(folded, answer, 0); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("the score of %q is %.3f, want %.3f", c.text, got, c.want)
		}
	}
}

func TestWhatIsReadAndStoredIsLimited(t *testing.T) {
	long := strings.Repeat("ä", MaxStored+50)
	if r := Detect(Message{Text: "correction: " + long}); utf8.RuneCountInString(r.Text) != MaxStored {
		t.Errorf("%d characters are stored", utf8.RuneCountInString(r.Text))
	}
	rule := "From now on answer in German. "
	if r := Detect(Message{Text: rule, Answer: "x"}); r.Layer != Rules {
		t.Errorf("%+v", r)
	}
	if r := Detect(Message{Text: rule + strings.Repeat("x", MaxText), Answer: "x"}); r.Layer != None {
		t.Errorf("a message beyond the limit: %+v", r)
	}
	var words strings.Builder
	for i := range 40 {
		words.WriteString(strings.Repeat(string(rune('a'+i%26)), 5) + string(rune('a'+i/26)) + " ")
	}
	if key := Canonical(words.String()); utf8.RuneCountInString(key) > 60 || len(key) < 50 {
		t.Errorf("%q", key)
	}
}

func TestCanonicalKeyIsTheSameForTheSameTopic(t *testing.T) {
	if a, b := Canonical("What is the capital of Australia?"), Canonical("the Capital, of AUSTRALIA"); a != b || a != "australia capital" {
		t.Errorf("%q, %q", a, b)
	}
}
