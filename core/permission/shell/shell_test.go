package shell

import (
	"strings"
	"testing"
	"time"
)

// Whatever a model writes, reading it takes no time to speak of: an evening of
// work hidden in a few bytes is cut off, and then the command counts as hidden.
func TestNoTextTakesLongToRead(t *testing.T) {
	doubling := "f0() { echo; }; "
	for i := 1; i < 20; i++ {
		n := string(rune('a' + i))
		before := string(rune('a' + i - 1))
		if i == 1 {
			before = "f0"
		}
		doubling += n + "() { " + before + "; " + before + " x; }; "
	}
	for name, text := range map[string]string{
		"substitutions in substitutions": strings.Repeat("$(echo ", 200) + "x" + strings.Repeat(")", 200),
		"defaults in defaults":           strings.Repeat("${x:-", 200) + "x" + strings.Repeat("}", 200),
		"both":                           strings.Repeat("${x:-$(echo ", 60) + "x" + strings.Repeat(")}", 60),
		"backquotes in arithmetic":       strings.Repeat("$(( $(", 60) + "x" + strings.Repeat(") ))", 60),
		"braces":                         "echo " + strings.Repeat("{a,b}", 30),
		"sequences":                      "echo {1..1000000000}{1..1000000000}",
		"many words of braces":           strings.Repeat("echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}; ", 400),
		"braces in a loop":               strings.Repeat("for a in {1..60}; do ", 8) + "x{1..60} $a{1..60};" + strings.Repeat("done;", 8),
		"functions that double":          doubling + "t",
		"a variable that doubles":        "x=aaaaaaaaaaaaaaaa; " + strings.Repeat("x=$x$x; ", 40) + "$x",
		"fields that double":             "x='a a'; " + strings.Repeat("x=\"$x $x\"; ", 40) + "echo $x $x",
		"possibilities":                  strings.Repeat("if a; then x=${x}1; else x=${x}2; fi; ", 200) + "$x $x $x $x",
		"pipes":                          strings.Repeat("echo a | ", 3000) + "sh",
		"wrappers":                       strings.Repeat("env ", 5000) + "ls",
		"shells":                         strings.Repeat("sh -c 'sh -c \"", 50),
		"xargs":                          "echo " + strings.Repeat("a ", 8000) + "| xargs " + strings.Repeat("-I{} ", 1) + strings.Repeat("{} ", 200),
		"printf":                         "sh -c \"$(printf '%s%s%s' " + strings.Repeat("a ", 8000) + ")\"",
		"eval of itself":                 "x='eval \"$x\"; eval \"$x\"'; eval \"$x\"",
		"alias of itself":                "alias a='a;b'; alias b='a;a'; a",
		"names":                          "ls " + strings.Repeat("a=b:c,d@e ", 6000),
		"heredocs":                       strings.Repeat("cat <<E\n$(cat <<F\nx\nF\n)\nE\n", 300),
		"parentheses":                    strings.Repeat("(", 5000) + "ls" + strings.Repeat(")", 5000),
	} {
		start := time.Now()
		r := Examine(text)
		if d := time.Since(start); d > time.Minute { // milliseconds on an idle machine; without the bounds, hours
			t.Errorf("%s: %v", name, d)
		} else {
			t.Logf("%s: %v, hidden %v", name, d.Round(time.Millisecond), len(r.Hidden) > 0)
		}
	}
}

func TestWhatIsTooLongIsHidden(t *testing.T) {
	for _, text := range []string{"ls " + strings.Repeat("x", 64<<10), strings.Repeat("ls;", 20000), "ls \ue000", "ls \x00"} {
		if r := Examine(text); len(r.Hidden) == 0 {
			t.Errorf("%d bytes pass", len(text))
		}
	}
}
