package pairing

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"unicode/utf16"

	"gatehouse/core"
	"gatehouse/core/store"
)

//go:embed texts.tmpl
var catalogue string

// texts is the catalogue, parsed once; a test runs every template.
var texts = template.Must(template.New("texts").Option("missingkey=error").Parse(catalogue))

// words are what a template may say; what a stranger has chosen, a name, is
// cleaned and shown to the owner and admins alone.
type words struct {
	Code     string
	Accounts string // of a person who is known, a line each
	Name     string // of a group or a person
	ID       string // of that person
	Until    string // when something is over, in UTC
}

// post says the named text to an address. The code in it is styled as code.
func (b *Book) post(ctx context.Context, tx *store.Tx, to core.Address, key, name string, w words) error {
	part, err := say(name, w)
	if err != nil {
		return err
	}
	if err := b.mail.Post(ctx, tx, core.Reply{Address: to, Key: key, Parts: []core.Part{part}}); err != nil {
		return fmt.Errorf("post %s: %w", name, err)
	}
	return nil
}

func say(name string, w words) (core.Part, error) {
	var out strings.Builder
	if err := texts.ExecuteTemplate(&out, name, w); err != nil {
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
