package detect

import (
	"bufio"
	"embed"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed rules/*.txt
var files embed.FS

// A rule is one pattern with an exception.
type rule struct {
	match  *pattern
	unless *pattern // nil: none
	kind   Type     // of positive rules
	weight float64  // strength of positive rules
}

func (r *rule) matches(t *text) bool {
	return r.match.matches(t) && (r.unless == nil || !r.unless.matches(t))
}

func anyOf(rules []rule, t *text) bool {
	for i := range rules {
		if rules[i].matches(t) {
			return true
		}
	}
	return false
}

// A language is one file of rules.
type language struct {
	name                       string
	negation, second           []rule
	negative, positive         []rule
	global, conversation, proj []rule
	hedge                      []rule
	stop                       map[string]bool
	domains                    map[string][]string // by word
	names                      []string            // of languages, as the language calls them
}

// languages are the embedded files, parsed at the first use: English, then German.
var languages = sync.OnceValue(func() []*language {
	var out []*language
	for _, name := range []string{"en", "de"} {
		l, err := parse(name)
		if err != nil {
			panic(err) // the files are part of the program, and a test parses them
		}
		out = append(out, l)
	}
	return out
})

// sections returns where the patterns of a section go, by its name.
func (l *language) sections() map[string]*[]rule {
	return map[string]*[]rule{"negation": &l.negation, "second": &l.second, "negative": &l.negative, "global": &l.global,
		"conversation": &l.conversation, "project": &l.proj, "hedge": &l.hedge}
}

// parse reads one file of rules.
func parse(name string) (*language, error) {
	l := &language{name: name, stop: map[string]bool{}, domains: map[string][]string{}}
	f, err := files.Open(path.Join("rules", name+".txt"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	section, arg, n := "", "", 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") && !strings.Contains(line, "\\") {
			section, arg, _ = strings.Cut(strings.Trim(line, "[]"), " ")
			continue
		}
		if err := l.add(section, arg, line); err != nil {
			return nil, fmt.Errorf("rules/%s.txt, line %d: %w", name, n, err)
		}
	}
	return l, lines.Err()
}

// add adds a line of a section.
func (l *language) add(section, arg, line string) error {
	switch section {
	case "stop":
		for w := range strings.FieldsSeq(line) {
			l.stop[w] = true
		}
		return nil
	case "domain":
		for w := range strings.FieldsSeq(line) {
			l.domains[w] = append(l.domains[w], arg)
		}
		return nil
	case "language":
		l.names = append(l.names, strings.Fields(line)...)
		return nil
	}
	r, err := compile(line)
	if err != nil {
		return err
	}
	if to := l.sections()[section]; to != nil {
		*to = append(*to, r)
		return nil
	}
	if r.kind = Type(section); !r.kind.Valid() {
		return fmt.Errorf("unknown section %q", section)
	}
	if r.weight, err = strconv.ParseFloat(arg, 64); err != nil {
		return fmt.Errorf("strength of %s: %w", section, err)
	}
	l.positive = append(l.positive, r)
	return nil
}

func compile(line string) (r rule, err error) {
	match, unless, has := strings.Cut(line, " ~~ ")
	if r.match, err = newPattern(match); err != nil {
		return r, err
	}
	if has {
		r.unless, err = newPattern(unless)
	}
	return r, err
}
