// Package texts is the catalogue of the gateway's own texts in chat: every
// sentence and every label of a button. To change a text, or to translate all of
// them, edit the .tmpl files here, by subject:
//
//	gate.tmpl      answers of the gate to strangers and approved users
//	commands.tmpl  commands: their menus and their answers
//	asks.tmpl      questions, approvals, their buttons and their outcomes
//	runs.tmpl      why there is no answer
//	council_notes.tmpl  under and in place of answers of a council
//	files.tmpl     files that were not read, or not sent
//	journal.tmpl   the journal, and the time zone of its dates
//	memory.tmpl    the memory of corrections
//
// Say renders the texts of the gate, some of which operators may replace for one
// bot (Editable). They are plain text without markup on any platform. Text
// renders all others. Tests check that each text is used with exactly its
// fields, and that the code has no chat text outside of the catalogue.
//
// Logs, metrics, pages, API problems and the command line have their own texts.
// A sentence that is used there and in chat is here.
package texts

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
	"time"
	"unicode/utf16"

	"gatehouse/core"
)

var (
	//go:embed gate.tmpl
	gate string
	//go:embed commands.tmpl
	commands string
	//go:embed asks.tmpl
	asks string
	//go:embed runs.tmpl
	runs string
	//go:embed council_notes.tmpl
	councilNotes string
	//go:embed files.tmpl
	files string
	//go:embed journal.tmpl
	journal string
	//go:embed memory.tmpl
	memory string
)

// A text is one of the catalogue. Its template is parsed when it is first used.
type text struct {
	source string // {{define "name"}} and what follows, up to the next text
	once   sync.Once
	plain  string             // as it is rendered, of a text without fields
	filled *template.Template // nil: plain
}

// catalogue returns the texts by name. The first call splits the files, so that commands
// of the program that need no text do not pay for it.
var catalogue = sync.OnceValue(func() map[string]*text {
	all := map[string]*text{}
	for _, source := range [...]string{gate, commands, asks, runs, councilNotes, files, journal, memory} {
		for _, piece := range strings.Split(source, define)[1:] { // before the first text are remarks
			name, _, _ := strings.Cut(piece, `"`)
			if all[name] != nil {
				panic("texts: there are two of " + name)
			}
			all[name] = &text{source: define + piece}
		}
	}
	return all
})

const define = `{{define "`

// find returns the text with a name, parsed; false if there is none.
func find(name string) (*text, bool) {
	x := catalogue()[name]
	if x == nil {
		return nil, false
	}
	x.once.Do(func() {
		t := template.Must(template.New("").Option("missingkey=error").Parse(x.source)).Lookup(name)
		if isPlain(t.Root) {
			x.plain = strings.TrimSpace(t.Root.String())
		} else {
			x.filled = t
		}
	})
	return x, true
}

func isPlain(l *parse.ListNode) bool {
	for _, n := range l.Nodes {
		if n.Type() != parse.NodeText {
			return false
		}
	}
	return true
}

// With holds the values of a text's fields, by name.
type With map[string]any

// Text returns the text with a name, filled in with values. It panics if there
// is no such text, or if a field has no value.
func Text(name string, with ...With) string {
	x, ok := find(name)
	if !ok {
		panic(missing(name))
	}
	if x.filled == nil {
		return x.plain
	}
	var values With
	if len(with) > 0 {
		values = with[0]
	}
	said, err := execute(x.filled, name, values)
	if err != nil {
		panic(err)
	}
	return said
}

// Error returns an error of kind k with the text of a name.
func Error(k core.Kind, name string, with ...With) error {
	return &core.Error{Kind: k, Text: Text(name, with...)}
}

// Words are the fields of the gate's texts. A user chooses their own name: Say
// cleans it. Only that user, the owner and the admins see it.
type Words struct {
	Code     string // of a pairing request
	Name     string // of a group, or of a user
	ID       string // of that person
	Accounts string // of a known user, a line each
	Bot      string // the bot's name in the settings
	Until    string // when something ends, in the user's time zone
}

// Say returns the gate's text with a name. The code in it has the style of code.
func Say(name string, w Words) (core.Part, error) {
	x, ok := find(name)
	if !ok {
		return core.Part{}, missing(name)
	}
	if x.filled == nil {
		return core.Part{Text: x.plain}, nil
	}
	return run(x.filled, name, w)
}

func missing(name string) error { return fmt.Errorf("text %s: it is not in the catalogue", name) }

func run(t *template.Template, name string, w Words) (core.Part, error) {
	w.Name = core.CleanName(w.Name)
	said, err := execute(t, name, w)
	if err != nil {
		return core.Part{}, err
	}
	part := core.Part{Text: said}
	if w.Code != "" {
		if before, _, found := strings.Cut(part.Text, w.Code); found {
			part.Spans = []core.Span{{Style: core.StyleCode, Offset: len(utf16.Encode([]rune(before))), Length: len(w.Code)}}
		}
	}
	return part, nil
}

func execute(t *template.Template, name string, values any) (string, error) {
	var out strings.Builder
	if err := t.Execute(&out, values); err != nil {
		return "", fmt.Errorf("text %s: %w", name, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// Time returns a time as every text in chat writes it, in the time zone of who reads it:
// with the day where that is not the same as now's, and with the year where that is not.
func Time(t, now time.Time, zone *time.Location) string {
	t, now = t.In(zone), now.In(zone)
	switch {
	case t.Year() != now.Year():
		return t.Format("Monday, 2 January 2006, 15:04 MST")
	case t.YearDay() != now.YearDay():
		return t.Format("Monday, 2 January, 15:04 MST")
	}
	return t.Format("15:04 MST")
}

// AsksAgain reports whether a reason already asks to try again, so that no text repeats it.
func AsksAgain(reason string) bool { return strings.Contains(strings.ToLower(reason), "try again") }
