// Package texts is the catalogue of what the gateway says to people in chat by
// itself: every sentence, label of a button and half sentence that it makes up.
// Whoever wants another word, or another language, finds all of them in the
// .tmpl files here, by subject:
//
//	gate.tmpl      what the gate says to strangers and those it lets in
//	commands.tmpl  the commands: in menus, and what they answer
//	asks.tmpl      questions to people, their buttons, and what becomes of them
//	runs.tmpl      what stands in the place of an answer, and why
//	files.tmpl     files that were not read, or not sent
//
// The texts of the gate are said by Say, since some of them may be written anew
// for one bot (Editable). They are plain: nothing in them is markup, on no
// platform, so that a name or a star is shown as it is written. All others are
// said by Text. Tests hold that each is used, with just the values that it fills
// in, and that nothing is said beside the catalogue.
//
// Logs, metrics, pages, problems of the API and the command line are not said in
// chat and stand elsewhere; a sentence that is for both stands here.
package texts

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
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
	//go:embed files.tmpl
	files string
)

// A book is the catalogue, parsed. Most texts have no fields: they are kept as
// they are said, and cost a look into a map.
type book struct {
	plain  map[string]string
	filled *template.Template // those with fields, by name
}

// catalogue is parsed when the first text is said: a command of the program
// that says nothing does not pay for it.
var catalogue = sync.OnceValue(func() book {
	b := book{plain: map[string]string{}, filled: template.New("").Option("missingkey=error")}
	for _, source := range [...]string{gate, commands, asks, runs, files} {
		for _, t := range template.Must(template.New("").Parse(source)).Templates() {
			switch {
			case t.Name() == "": // the remarks between the texts
			case b.has(t.Name()):
				panic("texts: there are two of " + t.Name())
			case isPlain(t.Root):
				b.plain[t.Name()] = strings.TrimSpace(t.Root.String())
			default:
				template.Must(b.filled.AddParseTree(t.Name(), t.Tree))
			}
		}
	}
	return b
})

func (b book) has(name string) bool {
	_, ok := b.plain[name]
	return ok || b.filled.Lookup(name) != nil
}

func isPlain(l *parse.ListNode) bool {
	for _, n := range l.Nodes {
		if n.Type() != parse.NodeText {
			return false
		}
	}
	return true
}

// With are the values of a text's fields, by name.
type With map[string]any

// Text is the catalogue's text of that name, filled in with the values that it
// names. One that is not there, or names others, is a mistake in the program.
func Text(name string, with ...With) string {
	b := catalogue()
	if said, ok := b.plain[name]; ok {
		return said
	}
	var values With
	if len(with) > 0 {
		values = with[0]
	}
	said, err := execute(b.filled.Lookup(name), name, values)
	if err != nil {
		panic(err)
	}
	return said
}

// Error is an error of kind k that says the catalogue's text of that name.
func Error(k core.Kind, name string, with ...With) error {
	return &core.Error{Kind: k, Text: Text(name, with...)}
}

// Words are what a text of the gate may say. Names are what people have chosen:
// they are cleaned here, and shown to nobody who does not bear them but the
// owner and admins.
type Words struct {
	Code     string // of a pairing request
	Name     string // of a group, or of a person
	ID       string // of that person
	Accounts string // of a person who is known, a line each
	Bot      string // the bot's name in the settings
	Until    string // when something is over, in UTC
}

// Say is the gate's text of that name. The code in it is styled as code.
func Say(name string, w Words) (core.Part, error) {
	b := catalogue()
	if said, ok := b.plain[name]; ok {
		return core.Part{Text: said}, nil
	}
	return run(b.filled.Lookup(name), name, w)
}

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
	if t == nil {
		return "", fmt.Errorf("text %s: it is not in the catalogue", name)
	}
	var out strings.Builder
	if err := t.Execute(&out, values); err != nil {
		return "", fmt.Errorf("text %s: %w", name, err)
	}
	return strings.TrimSpace(out.String()), nil
}
