package detect

import (
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"gatehouse/core/coretest"
)

// Words that an expression is said to need spare nothing that it matches.
func TestAnExpressionIsAskedWhereverItMatches(t *testing.T) {
	if coretest.Race {
		t.Skip("make counts runs it: it computes much, and nothing side by side")
	}
	var texts []string
	found, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, name := range found {
		for _, c := range load(t, filepath.Base(name)) {
			texts = append(texts, Fold(c.text), Fold(c.answer))
		}
	}
	rules, asked, spared := 0, 0, 0
	for _, l := range languages() {
		all := [][]rule{l.negation, l.second, l.negative, l.positive, l.global, l.conversation, l.proj, l.hedge}
		for _, list := range all {
			for _, r := range list {
				for _, p := range []*pattern{r.match, r.unless} {
					if p == nil {
						continue
					}
					rules++
					for _, s := range texts {
						plain := p.compiled().MatchString(s)
						if got := p.matches(newText(s)); got != plain {
							t.Fatalf("%s: %q matches: %v, want %v; it needs %q", p.compiled(), s, got, plain, p.needs)
						}
						if asked++; !plain && len(p.needs) > 0 && !strings.Contains(s, p.needs[0]) {
							spared++
						}
					}
				}
			}
		}
	}
	t.Logf("%d expressions, %d questions", rules, asked)
	if spared < asked/2 {
		t.Errorf("only %d of %d questions are spared", spared, asked)
	}
}

func FuzzNeeds(f *testing.F) {
	for _, s := range []string{`^(a|ab|abc)?x\b ~~ no`, `(nein|nee|noe)[,.]* ?(danke|gut)`, `[a-c]{2,3}z|q+w`, `\bx(y|)z$`, `a{0,2}b`, `(?i)Hello`, `[^a]b.c`} {
		f.Add(s, "abc nee, danke xz")
	}
	f.Fuzz(func(t *testing.T, source, s string) {
		re, err := syntax.Parse(source, syntax.Perl)
		if err != nil || len(source) > 200 {
			return
		}
		plain, err := regexp.Compile(source)
		if err != nil {
			return
		}
		s = strings.ToValidUTF8(s, " ")
		p := pattern{needs: needs(re).least(), compiled: func() *regexp.Regexp { return plain }}
		if got, want := p.matches(newText(s)), plain.MatchString(s); got != want {
			t.Errorf("%q on %q: %v, want %v; it needs %q", source, s, got, want, p.needs)
		}
	})
}
