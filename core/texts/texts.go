// Package texts is the catalogue of what the gateway says to people in chat by
// itself: what the gate says to strangers and to those it lets in, and what
// stands in the place of an answer. Answers to commands stand with the
// commands. Some of the texts may be written anew for one bot (Editable).
//
// A text is plain: nothing in it is markup, on no platform, so that a name or
// a star in it is shown as it is written.
package texts

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"unicode/utf16"

	"gatehouse/core"
)

//go:embed texts.tmpl
var source string

// catalogue is parsed once; a test runs every template.
var catalogue = template.Must(template.New("texts").Option("missingkey=error").Parse(source))

// Words are what a template may say. Names are what people have chosen: they
// are cleaned here, and shown to nobody who does not bear them but the owner
// and admins.
type Words struct {
	Code     string // of a pairing request
	Name     string // of a group, or of a person
	ID       string // of that person
	Accounts string // of a person who is known, a line each
	Bot      string // the bot's name in the settings
	Kind     string // of a message that can't be read, with its article
	Reason   string // why there is no answer
	Until    string // when something is over, in UTC
	Again    bool   // trying again may help
}

// Say is the catalogue's text of that name. The code in it is styled as code.
func Say(name string, w Words) (core.Part, error) {
	return run(catalogue.Lookup(name), name, w)
}

// Text is the catalogue's text of that name alone. A name that is not there is
// a mistake in the program.
func Text(name string, w Words) string {
	part, err := Say(name, w)
	if err != nil {
		panic(err)
	}
	return part.Text
}

func run(t *template.Template, name string, w Words) (core.Part, error) {
	if t == nil {
		return core.Part{}, fmt.Errorf("text %s: it is not in the catalogue", name)
	}
	w.Name = core.CleanName(w.Name)
	var out strings.Builder
	if err := t.Execute(&out, w); err != nil {
		return core.Part{}, fmt.Errorf("text %s: %w", name, err)
	}
	part := core.Part{Text: strings.TrimSpace(out.String())}
	if w.Code != "" {
		if before, _, found := strings.Cut(part.Text, w.Code); found {
			part.Spans = []core.Span{{Style: core.StyleCode, Offset: len(utf16.Encode([]rune(before))), Length: len(w.Code)}}
		}
	}
	return part, nil
}
