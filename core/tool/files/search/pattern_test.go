package search

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"
)

// A glob's translation must mean what people know from doublestar.
func TestAGlobMatchesAsDoublestarDoes(t *testing.T) {
	check := func(fail func(string, ...any), g, name string) {
		want, err := doublestar.Match(g, name)
		re, err2 := compileGlob("pattern", g)
		if err2 != nil || err != nil {
			if doublestar.ValidatePattern(g) {
				fail("%q: %v, %v", g, err, err2)
			}
			return
		}
		if got := re.MatchString(name); got != want {
			fail("%q on %q: %v, doublestar says %v (%s)", g, name, got, want, re)
		}
	}
	for _, g := range []string{"*", "**", "a/**", "**/a", "a/**/b", "*.{md,txt}", "[a-c]?", "[^a]b", "[!a]b", `\*a`, "a.b", "{a,b/c}/d", "ä?", "a**b", "**a", "a{1,2}", "(a|b)+", "a,b"} {
		for _, name := range []string{"a", "a/b", "a/x/y/b", "x.md", "b.txt", "ab", "bb", "*a", "a.b", "axb", "a/d", "b/c/d", "äx", "axxb", "a1", "aa", "a,b", "a|b", "a\nb"} {
			check(t.Errorf, g, name)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "b", "*", "?", "/", "/**/", "[ab]", "[^a]", "{a,b}", "{a*,?}", ".", "-"})
		g := strings.Join(rapid.SliceOfN(part, 1, 7).Draw(r, "glob"), "")
		name := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "/", ".", "-"}), 1, 9).Draw(r, "name"), "")
		if strings.Contains(g, "***") || strings.Contains(g, "//") || strings.HasPrefix(g, "/") || strings.HasSuffix(g, "/") || path.Clean(name) != name || path.IsAbs(name) {
			return // no such paths are asked about
		}
		if strings.Contains(g, "[^") && strings.Contains(name, "/") {
			return // here a class stays within a name, as the stars do
		}
		check(r.Fatalf, g, name)
	})
}

// A glob of a stranger must not be able to hold the gateway up.
func TestNoGlobTakesForEver(t *testing.T) {
	name := strings.Repeat("a/", 60) + strings.Repeat("a", 200)
	for _, g := range []string{
		strings.Repeat("{"+strings.Repeat(",", 100)+"}", 9) + "x", strings.Repeat("**/", 300) + "x", strings.Repeat("*a", 400) + "x",
		strings.Repeat("{a,", 200) + "b" + strings.Repeat("}", 200), strings.Repeat("{*,**/}", 100) + "x",
	} {
		began := time.Now()
		re, err := compileGlob("pattern", g)
		if err != nil {
			t.Errorf("%.20s…: %v", g, err)
			continue
		}
		re.MatchString(name)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%.20s… takes %v", g, took)
		}
	}
}
