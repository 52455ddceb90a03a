package page

import (
	"html/template"
	"strings"
	"time"
)

// An Answer is the answer of a group of pages to one question of the overview.
type Answer struct {
	Key, Question, Answer, Path, Link string
	Tone                              string // good, idle, note, warn or bad
	Short                             string // for the page's first line; "" when nothing needs attention
	Detail                            []Detail
	Cards                             []template.HTML // what waits, each with the forms that decide it
	More                              int             // that wait behind those in Cards and Detail
	Broken                            string          // why there is no answer
}

// A Detail is a line below the answer. Who and Quote are hostile text and set apart.
type Detail struct {
	ID        string // of the line; "" for none
	Who, Text string
	At        time.Time // behind Text; zero for none
	Then      string    // behind At
	Quote     string    // what the line is about
	Reason    string
	Acts      []Act // what can be done about it
}

// An Act is a button of a Detail: a form that posts to Path and leads back to the
// overview.
type Act struct {
	Path, Label string
	Main        bool   // it is what is usually done
	Name, Value string // a field of the form; "" for none
	Of, CSRF    string // set by Signed
}

// Signed gives the forms of a their token.
func (a Answer) Signed(token string) Answer {
	for _, d := range a.Detail {
		for i := range d.Acts {
			d.Acts[i].Of, d.Acts[i].CSRF = d.Who, token
		}
	}
	return a
}

// A Spark is one series of the overview's figures, drawn small.
type Spark struct {
	Key, Label, Total string
	Points            string // of a line, in a drawing of 120 to 28; "" without values
	Bad               bool   // there should be none
	Path              string
}

// A Happening is a line of the overview's newest activity.
type Happening struct {
	At    time.Time
	Parts []Words
}

// Words are a part of a sentence; a Name is hostile text and set apart.
type Words struct {
	Text string
	Name bool
}

// Plain returns a sentence as text.
func Plain(parts []Words) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// A Job is the state of an operation that goes on after its request.
type Job struct {
	Running bool
	Tell    string    // how far it is, while it runs
	Said    []string  // what came of it
	Error   string    // why nothing came of it, fit to be shown
	At      time.Time // when it ended
	Size    int64     // of the file that it made
}
