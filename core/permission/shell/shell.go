// Package shell reads a command line the way a shell would and reports what it
// runs, without running anything.
//
// It reads each command twice. The package vetted reads the small part of the
// language that is wholly understood: only a command that it accepts
// (Report.Unknown is empty) may run without a question. The packages walk and
// programs follow everything else as far as they can: simple commands in lists, pipes, subshells,
// substitutions, functions, here-documents and behind wrappers such as env,
// xargs, eval and sh -c. What they find is used to refuse (Report.Danger) and to
// show users what a command runs; what they do not find proves nothing, so it
// never allows.
package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"gatehouse/core/permission/shell/programs"
	"gatehouse/core/permission/shell/vetted"
	"gatehouse/core/permission/shell/walk"
)

// Quote returns words as one would type them, each standing for itself.
func Quote(words []string) string {
	out := make([]string, len(words))
	for i, f := range words {
		q, err := syntax.Quote(f, syntax.LangBash)
		if err != nil {
			q = "…"
		}
		out[i] = q
	}
	return strings.Join(out, " ")
}

// A Report is what a command line would do.
type Report struct {
	Commands []Command // in the order of the text; none twice
	// Danger explains why it must not run at all; "" when nothing is known.
	Danger string
	// Unknown explains why the command is not wholly understood; empty when it is. Then
	// Commands are all that it runs, and Paths all the files that it names.
	Unknown []string
	Paths   []Path
	// Hidden reports what the list of Commands cannot show; empty when it is complete.
	Hidden []string
	// Names are what may be names of files in it, relative to where it starts or
	// absolute; "~" is the home directory. Unquoted "*", "?" and "[" are kept.
	Names []string
}

// A Command is one simple command.
type Command = walk.Command

// A Path is a file that an understood command names.
type Path = vetted.Path

// Examine reads a command line as bash does.
func Examine(text string) Report {
	found := walk.Follow(text, programs.Handler)
	r := Report{Commands: found.Commands, Danger: found.Danger, Hidden: found.Hidden, Names: found.Names}
	v := vetted.Read(text)
	if r.Unknown, r.Paths = v.Why, v.Paths; len(v.Why) > 0 {
		r.Paths = nil
		return r
	}
	r.Commands = nil
	for _, words := range v.Commands {
		c := understood(words)
		if !slices.ContainsFunc(r.Commands, func(o Command) bool { return o.Text == c.Text && slices.Equal(o.Words, c.Words) }) {
			r.Commands = append(r.Commands, c)
		}
	}
	return r
}

func understood(words []vetted.Word) Command {
	var c Command
	texts := make([]string, len(words))
	for i, w := range words {
		c.Words = append(c.Words, w.Text)
		if texts[i] = w.Text; !w.Pattern && !strings.HasPrefix(w.Text, "~") && w.Text != "[" && !(i == 0 && w.Text == ">") {
			texts[i] = Quote([]string{w.Text})
		}
	}
	c.Text = strings.Join(texts, " ")
	return c
}
