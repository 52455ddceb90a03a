package daylog

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An Entry is what a chat log has of a conversation.
type Entry struct {
	ID      string // its para-ID
	Time    string // HH:MM
	Session string
	Link    string // to the conversation
	Title   string
	Was     string // the title that was written before; "" for none
	Said    []Said // that are to be in it
}

// A Said is one exchange in an Entry.
type Said struct {
	Number  int // in its conversation, from 1
	Summary string
}

// Put returns a chat log of the day (as 2026-01-28) with these entries in it. An entry
// that is there keeps its text: its title is replaced where it is still Was, and
// exchanges that it lacks come behind the last. The others come behind the text.
func Put(text, day string, entries []Entry) string {
	d := parse(text)
	for i := range entries {
		e := &entries[i]
		s := d.find(e.ID)
		if s == nil {
			d.add(e)
			continue
		}
		s.update(e)
	}
	d.head(day, entries, nil)
	return d.String()
}

// Remove returns a chat log without the entries of these ids, and whether anything
// else is in it.
func Remove(text string, ids map[string]bool) (out string, left bool) {
	d := parse(text)
	d.sections = slices.DeleteFunc(d.sections, func(s section) bool { return ids[s.id] })
	d.head("", nil, ids)
	return d.String(), len(d.sections) > 0 || strings.TrimSpace(strings.Join(d.preface, "")) != ""
}

// Find returns the id of the entry of a session; "" if it has none.
func Find(text, session string) string {
	for _, s := range parse(text).sections {
		for _, line := range s.lines {
			if rest, ok := strings.CutPrefix(line, sessionLine); ok && strings.Contains(rest, session) {
				return s.id
			}
		}
	}
	return ""
}

// sessionLine begins the line that names an entry's conversation.
const sessionLine = "Session: "

// A doc is a chat log, every line with its end.
type doc struct {
	front    []string // between the dashes; nil without frontmatter
	open     string   // the line of dashes in front of it
	close    string   // and behind it
	preface  []string // up to the first entry
	sections []section
}

// A section is an entry: its heading and what follows up to the next.
type section struct {
	id    string
	lines []string
}

var heading = regexp.MustCompile(`^# para:([a-z0-9]{6,12})(\s|$)`)

func parse(text string) *doc {
	d := &doc{}
	lines := slices.Collect(strings.Lines(text))
	if len(lines) > 0 && bare(strings.TrimPrefix(lines[0], "\ufeff")) == "---" {
		if end := slices.IndexFunc(lines[1:], func(l string) bool { return bare(l) == "---" }); end >= 0 {
			d.open, d.front, d.close = lines[0], slices.Clone(lines[1:1+end]), lines[1+end]
			lines = lines[end+2:]
		}
	}
	for _, line := range lines {
		m := heading.FindStringSubmatch(line)
		switch {
		case m != nil:
			d.sections = append(d.sections, section{m[1], []string{line}})
		case len(d.sections) > 0:
			s := &d.sections[len(d.sections)-1]
			s.lines = append(s.lines, line)
		default:
			d.preface = append(d.preface, line)
		}
	}
	return d
}

// bare returns a line without its end and white space behind it.
func bare(line string) string { return strings.TrimRight(line, " \t\r\n") }

// String returns the text.
func (d *doc) String() string {
	var b strings.Builder
	part := func(lines ...string) {
		for _, l := range lines {
			if b.Len() > 0 && l != "" && !strings.HasSuffix(b.String()[b.Len()-1:], "\n") {
				b.WriteByte('\n')
			}
			b.WriteString(l)
		}
	}
	if d.close != "" {
		part(d.open)
		part(d.front...)
		part(d.close)
	}
	part(d.preface...)
	for _, s := range d.sections {
		part(s.lines...)
	}
	return b.String()
}

func (d *doc) find(id string) *section {
	if i := slices.IndexFunc(d.sections, func(s section) bool { return s.id == id }); i >= 0 {
		return &d.sections[i]
	}
	return nil
}

// add appends a new entry.
func (d *doc) add(e *Entry) {
	last := &d.preface
	if n := len(d.sections); n > 0 {
		last = &d.sections[n-1].lines
	}
	if n := len(*last); n > 0 && bare((*last)[n-1]) != "" || n == 0 {
		*last = append(*last, "\n")
	}
	s := section{e.ID, []string{"# para:" + e.ID + " " + e.Time + "\n", "\n", titleLine(e.Title), "\n", sessionLine + "[" + e.Session + "](" + e.Link + ")\n", "\n"}}
	for _, x := range e.Said {
		s.lines = append(s.lines, x.line())
	}
	d.sections = append(d.sections, s)
}

func titleLine(title string) string { return "**" + strings.ReplaceAll(title, "*", "") + "**\n" }

func (s Said) line() string { return strconv.Itoa(s.Number) + ". " + s.Summary + "\n" }

// update brings an entry up to date.
func (s *section) update(e *Entry) {
	if e.Was != "" && e.Was != e.Title {
		old := bare(titleLine(e.Was))
		if i := slices.IndexFunc(s.lines, func(l string) bool { return bare(l) == old }); i >= 0 {
			s.lines[i] = titleLine(e.Title)
		}
	}
	for _, x := range e.Said {
		if !s.has(x) {
			s.lines = slices.Insert(s.lines, s.place(x.Number), x.line())
		}
	}
}

var numbered = regexp.MustCompile(`^(\d{1,9})\. `)

// number returns the number that a line begins with; 0 without one.
func number(line string) int {
	m := numbered.FindStringSubmatch(line)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// indented reports whether a line goes on with the one above it.
func indented(line string) bool {
	return bare(line) != "" && strings.TrimLeft(line, " \t") != line
}

// list returns where the list of exchanges begins, behind the line of the conversation;
// -1 without one.
func (s *section) list() int {
	from := max(1, 1+slices.IndexFunc(s.lines, func(l string) bool { return strings.HasPrefix(l, sessionLine) }))
	i := slices.IndexFunc(s.lines[from:], func(l string) bool { return number(l) > 0 })
	if i < 0 {
		return -1
	}
	return from + i
}

// has reports whether an exchange is in the entry: as it was written, anywhere, or edited,
// in the list of exchanges. Other lists of the owner's may have its number too.
func (s *section) has(x Said) bool {
	if slices.ContainsFunc(s.lines, func(l string) bool { return bare(l) == bare(x.line()) }) {
		return true
	}
	for i := s.list(); i >= 0 && i < len(s.lines) && (number(s.lines[i]) > 0 || indented(s.lines[i])); i++ {
		if number(s.lines[i]) == x.Number {
			return true
		}
	}
	return false
}

// place returns where the exchange n belongs: behind the one before it, or else behind the
// text.
func (s *section) place(n int) int {
	first := s.list()
	if first < 0 { // nothing is listed: a list begins
		at := len(s.lines)
		for at > 1 && (bare(s.lines[at-1]) == "" || bare(s.lines[at-1]) == "---") {
			at--
		}
		s.lines = slices.Insert(s.lines, at, "\n")
		return at + 1
	}
	last := first
	for i := first; i < len(s.lines) && (number(s.lines[i]) > 0 || indented(s.lines[i]) || bare(s.lines[i]) == ""); i++ {
		if k := number(s.lines[i]); k > 0 && k < n {
			last = i + 1
		}
	}
	for last > first && last < len(s.lines) && indented(s.lines[last]) {
		last++
	}
	if last > 0 && !strings.HasSuffix(s.lines[last-1], "\n") {
		s.lines[last-1] += "\n"
	}
	return last
}

// head brings the frontmatter up to date: the day, and a line for each entry. Of the ids
// in gone the lines are removed. Frontmatter without a list of entries gets one.
func (d *doc) head(day string, entries []Entry, gone map[string]bool) {
	if d.close == "" {
		if len(entries) == 0 {
			return
		}
		d.open, d.close = "---\n", "---\n"
		d.front = []string{"date: " + day + "\n", "entries:\n"}
		if d.preface == nil {
			d.preface = []string{"\n"}
		}
	}
	at := slices.IndexFunc(d.front, func(l string) bool { return strings.HasPrefix(l, "entries:") })
	if at < 0 {
		at = len(d.front)
		d.front = append(d.front, "entries:\n")
	}
	if value := strings.TrimSpace(strings.TrimPrefix(bare(d.front[at]), "entries:")); value == "{}" {
		d.front[at] = "entries:\n"
	} else if value != "" { // in a form that is not ours
		return
	}
	end := at + 1
	for end < len(d.front) && (strings.HasPrefix(d.front[end], " ") || bare(d.front[end]) == "") {
		end++
	}
	list, indent := without(d.front[at+1:end], gone), "  "
	if len(list) > 0 && strings.HasPrefix(list[0], " ") {
		indent = list[0][:len(list[0])-len(strings.TrimLeft(list[0], " "))]
	}
	for i := range entries {
		e := &entries[i]
		if !slices.ContainsFunc(list, func(l string) bool { return strings.HasPrefix(strings.TrimLeft(l, " "), e.ID+":") }) {
			list = append(list, fmt.Sprintf("%s%s: {type: chat, created: %q, session: %s}\n", indent, e.ID, e.Time, e.Session))
		}
	}
	if d.front = slices.Concat(d.front[:at+1], list, d.front[end:]); len(list) == 0 {
		d.front[at] = "entries: {}\n"
	}
}

// without returns the lines of a list of entries without those of the ids in gone.
func without(list []string, gone map[string]bool) (out []string) {
	drop, depth := false, 0
	for _, l := range list {
		indent := len(l) - len(strings.TrimLeft(l, " "))
		if drop && indent > depth && bare(l) != "" {
			continue
		}
		id, _, found := strings.Cut(strings.TrimLeft(l, " "), ":")
		if drop, depth = found && gone[id], indent; !drop {
			out = append(out, l)
		}
	}
	return out
}
