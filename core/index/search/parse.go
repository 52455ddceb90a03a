package search

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
)

// Parse returns what a user looks for: words, each of which a passage must have, the
// last as a prefix where nothing has it whole, and these operators:
//
//	"green tea"   the words next to each other
//	-word         not this word (also -"two words")
//	tag:garden    with this tag
//	in:Notes      in this directory (also in:"My Notes")
//	type:document documents alone; type:journal; type:session, type:conversation
//
// What does not have this form is read as words; it is never an error.
func Parse(typed string) (q Asked, types []string) {
	var text []string
	for piece := range pieces(typed) {
		negative := piece.operator == "-"
		switch {
		case negative:
			q.Words.Exclude(piece.value)
		case piece.operator == "tag":
			q.Tags = append(q.Tags, strings.ToLower(strings.TrimPrefix(piece.value, "#")))
		case piece.operator == "in":
			q.Folder = folder(piece.value)
		case piece.operator == "type":
			types = append(types, typeOf(piece.value))
		case piece.phrase:
			before := len(q.Words.Terms)
			q.Words.Add(piece.value)
			q.Phrases = append(q.Phrases, q.Words.Terms[before:]...)
			text = append(text, piece.value)
		default:
			for word := range strings.FieldsSeq(piece.value) {
				q.Words.Add(word)
			}
			text = append(text, piece.value)
		}
	}
	q.Text = strings.TrimSpace(strings.Join(text, " "))
	return q, types
}

// A piece is a word or a phrase, and the operator in front.
type piece struct {
	operator string // "", "-", "tag", "in", "type"
	value    string
	phrase   bool // it was in quotes
}

// pieces splits text at spaces outside of quotes. A quote without its end is a space.
func pieces(text string) func(yield func(piece) bool) {
	return func(yield func(piece) bool) {
		for rest := text; ; {
			rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
			if rest == "" {
				return
			}
			var p piece
			p.operator, rest = operator(rest)
			if value, after, ok := quoted(rest); ok {
				p.value, p.phrase, rest = value, true, after
			} else {
				end := strings.IndexFunc(rest, unicode.IsSpace)
				if end < 0 {
					end = len(rest)
				}
				p.value, rest = strings.ReplaceAll(rest[:end], `"`, " "), rest[end:]
			}
			if !p.fits() {
				p = piece{value: p.operator + " " + p.value}
			}
			if !yield(p) {
				return
			}
		}
	}
}

// fits reports whether the operator can have the value.
func (p piece) fits() bool {
	switch p.operator {
	case "type":
		return typeOf(p.value) != ""
	case "in":
		return folder(p.value) != ""
	case "tag":
		return strings.ContainsFunc(p.value, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
	}
	return true
}

// operator returns the operator that text begins with and what follows it.
func operator(text string) (op, rest string) {
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		if r, _ := utf8.DecodeRuneInString(rest); r == '"' || unicode.IsLetter(r) || unicode.IsNumber(r) {
			return "-", rest
		}
		return "", text
	}
	for _, op := range [...]string{"tag", "in", "type"} {
		if len(text) > len(op)+1 && strings.EqualFold(text[:len(op)], op) && text[len(op)] == ':' {
			if r, _ := utf8.DecodeRuneInString(text[len(op)+1:]); !unicode.IsSpace(r) {
				return op, text[len(op)+1:]
			}
		}
	}
	return "", text
}

// quoted returns the content of the quotes that text begins with, and what follows.
func quoted(text string) (value, rest string, ok bool) {
	if after, begins := strings.CutPrefix(text, `"`); begins {
		value, rest, ok = strings.Cut(after, `"`)
	}
	return value, rest, ok
}

// typeOf returns the type that a user names, "" for none.
func typeOf(name string) string {
	switch strings.TrimSuffix(strings.ToLower(name), "s") {
	case Session, "conversation", "chat":
		return Session
	case Document, "file", "note":
		return Document
	case Journal:
		return Journal
	}
	return ""
}

// folder returns a folder as paths of documents begin with it, "" for the vault.
func folder(name string) string {
	return strings.Trim(path.Clean("/"+name), "/")
}

// printable returns s with spaces for control characters: no text has them, and
// PostgreSQL takes no zero bytes.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// parsed returns q as the sources are asked, and the types to search.
func (q Query) parsed() (asked Asked, types []string, err error) {
	if !utf8.ValidString(q.Text) || utf8.RuneCountInString(q.Text) > MaxText {
		return Asked{}, nil, core.Errorf(core.Invalid, "a search is at most %d characters of UTF-8", MaxText)
	}
	asked, types = Parse(printable(q.Text))
	if len(types) == 0 {
		types = []string{Session, Document, Journal}
	}
	if len(q.Types) > 0 {
		var wanted []string
		for _, t := range q.Types {
			kind := typeOf(t)
			if kind == "" {
				return Asked{}, nil, core.Errorf(core.Invalid, "there is no type %q: write %s, %s or %s", t, Session, Document, Journal)
			}
			wanted = append(wanted, kind)
		}
		types = slices.DeleteFunc(types, func(t string) bool { return !slices.Contains(wanted, t) })
	}
	asked.Tags = asked.Tags[:min(len(asked.Tags), maxTags)] // those of the text are never an error
	if asked.Tags = append(asked.Tags, q.Tags...); len(asked.Tags) > maxTags {
		return Asked{}, nil, core.Errorf(core.Invalid, "a search has at most %d tags", maxTags)
	}
	if q.Folder != "" {
		asked.Folder = folder(printable(q.Folder))
	}
	asked.After, asked.Before, asked.Project = q.After, q.Before, q.Project
	slices.Sort(types)
	types = slices.Compact(types)
	for _, t := range types {
		if t != Session {
			asked.Types = append(asked.Types, t)
		}
	}
	return asked, types, nil
}
