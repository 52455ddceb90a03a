package texts

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
)

// MaxSource bounds the source of a replaced text, in bytes.
const MaxSource = 8000

// An Own text is one that the operator may replace for a bot.
type Own struct {
	Name  string
	Title string
	When  string // who receives it, and when
	Code  bool   // it must contain the pairing code
	Until bool   // it may contain the time from which the person is answered again
}

// Fields returns the names of the text's fields, with their dots.
func (o Own) Fields() []string {
	switch {
	case o.Code:
		return []string{".Code", ".Name", ".Bot"}
	case o.Until:
		return []string{".Until", ".Name", ".Bot"}
	}
	return []string{".Name", ".Bot"}
}

var own = []Own{
	{Name: "code", Title: "A stranger writes", When: "Sent to a person without access who writes to the bot.", Code: true},
	{Name: "start", Title: "A stranger presses Start", When: "Sent to a person without access who sends /start.", Code: true},
	{Name: "help", Title: "A stranger asks for help", When: "Sent to a person without access who sends /help.", Code: true},
	{Name: "approved", Title: "Welcome: approved", When: "Sent to a person whose request is approved."},
	{Name: "invited", Title: "Welcome: invited", When: "Sent to a person who accepted an invitation."},
	{Name: "approved_again", Title: "Welcome: approved again", When: "Sent to a person who is approved again after their access was revoked."},
	{Name: "denied", Title: "Denied", When: "Sent once to a person whose request is denied; they get no answer for a week after it."},
	{Name: "revoked", Title: "Revoked", When: "Sent once to a person who writes to the bot after their access was revoked.", Until: true},
	{Name: "revoked_group", Title: "Revoked, in a group", When: "Sent once to a person who writes to the bot in a group after their access was revoked.", Until: true},
}

// Editable returns the texts that may be replaced, in the order in which a user
// receives them.
func Editable() []Own { return slices.Clone(own) }

// Find returns the editable text with a name.
func Find(name string) (Own, bool) {
	i := slices.IndexFunc(own, func(o Own) bool { return o.Name == name })
	if i < 0 {
		return Own{}, false
	}
	return own[i], true
}

// Default returns the source of the catalogue's text.
func Default(name string) string {
	x, ok := find(name)
	switch {
	case !ok:
		return ""
	case x.filled == nil:
		return x.plain
	}
	return strings.TrimSpace(x.filled.Root.String())
}

// SayOwn is Say with the source of a replaced text. The caller has checked the
// source before it was stored; SayOwn returns an error for an invalid one.
func SayOwn(o Own, body string, w Words) (core.Part, error) {
	t, err := o.parse(body)
	if err != nil {
		return core.Part{}, err
	}
	part, err := run(t, o.Name, w)
	if err == nil && part.Text == "" {
		err = fmt.Errorf("text %s: it is empty", o.Name)
	}
	return part, err
}

// Example returns example values for a preview of a text.
func Example(bot string) Words {
	return Words{Code: "K7M2Q9XT", Name: "Ada", Bot: bot, Until: "Wednesday, 30 September, 23:59 CEST"}
}

// Room is the size limit of one message on a platform.
type Room struct {
	Most int
	Size func(core.Part) int // of a part, as the platform counts
}

// Check returns an error of kind core.Invalid that names the line, or nil. A text
// that passes fits into a message, is not empty and contains its code, with the
// longest name and without one.
func (o Own) Check(body, bot string, room Room) error {
	t, err := o.parse(body)
	if err != nil {
		return err
	}
	for _, name := range []string{"", strings.Repeat("_", core.MaxName+1), strings.Repeat("🙂", core.MaxName+1)} {
		w := Example(bot)
		w.Name = name
		part, err := run(t, o.Name, w)
		switch size := room.Size(part); {
		case err != nil:
			return core.Errorf(core.Invalid, "the text cannot be used: %v", err)
		case part.Text == "":
			return core.Errorf(core.Invalid, "the text would be empty%s", nameless(name))
		case o.Code && !strings.Contains(part.Text, w.Code):
			return core.Errorf(core.Invalid, "the code is missing%s: write {{.Code}} where it belongs; without it a person cannot tell you which request is theirs", nameless(name))
		case size > room.Most:
			return core.Errorf(core.Invalid, "it is too long: with a long name it takes %d characters, and a message here holds %d", size, room.Most)
		}
	}
	return nil
}

func nameless(name string) string {
	if name == "" {
		return " for a person without a name"
	}
	return ""
}

// parse parses a source of text, fields, if, else and with. It refuses all else,
// so that no text runs long or reaches other data.
func (o Own) parse(body string) (*template.Template, error) {
	if err := plain(body); err != nil {
		return nil, err
	}
	t, err := template.New(o.Name).Parse(body)
	if err != nil {
		return nil, o.fault(err)
	}
	if len(t.Templates()) > 1 {
		return nil, core.Errorf(core.Invalid, "{{define}} and {{block}} cannot be used here")
	}
	if t.Tree == nil || t.Root == nil {
		return nil, core.Errorf(core.Invalid, "it is empty; use the button to restore the default")
	}
	if n, why := o.refused(t.Root, false); n != nil {
		return nil, core.Errorf(core.Invalid, "line %d: %s", lineOf(body, n), why)
	}
	return t, nil
}

// plain returns an error for a source that is no valid message.
func plain(body string) error {
	switch {
	case !utf8.ValidString(body):
		return core.Errorf(core.Invalid, "it is not text in UTF-8")
	case len(body) > MaxSource:
		return core.Errorf(core.Invalid, "it is too long: %d bytes, and %d is the most", len(body), MaxSource)
	case strings.TrimSpace(body) == "":
		return core.Errorf(core.Invalid, "it is empty; use the button to restore the default")
	}
	line := 1
	for _, r := range body {
		if r == '\n' {
			line++
		} else if unicode.IsControl(r) && r != '\t' {
			return core.Errorf(core.Invalid, "line %d: the control character U+%04X is in it", line, r)
		}
	}
	return nil
}

func lineOf(body string, n parse.Node) int {
	return 1 + strings.Count(body[:min(len(body), int(n.Position()))], "\n")
}

// refused returns the first node that is not allowed, and why. With inside, a
// {{with}} has set the dot.
func (o Own) refused(n parse.Node, inside bool) (parse.Node, string) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil, ""
		}
		for _, x := range n.Nodes {
			if bad, why := o.refused(x, inside); bad != nil {
				return bad, why
			}
		}
		return nil, ""
	case *parse.TextNode, *parse.CommentNode:
		return nil, ""
	case *parse.ActionNode:
		return o.field(n.Pipe, inside)
	case *parse.IfNode:
		return o.branch(&n.BranchNode, inside, inside)
	case *parse.WithNode:
		return o.branch(&n.BranchNode, inside, true)
	}
	return n, "only fields, if, else and with can be used here; " + o.known()
}

func (o Own) branch(n *parse.BranchNode, outside, inside bool) (parse.Node, string) {
	if bad, why := o.field(n.Pipe, outside); bad != nil {
		return bad, why
	}
	if bad, why := o.refused(n.List, inside); bad != nil {
		return bad, why
	}
	return o.refused(n.ElseList, outside)
}

// field accepts a single field: {{.Name}}, {{$.Name}}, and {{.}} inside a with.
func (o Own) field(p *parse.PipeNode, inside bool) (parse.Node, string) {
	if len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return p, "exactly one field belongs between the braces; " + o.known()
	}
	var name string
	switch n := p.Cmds[0].Args[0].(type) {
	case *parse.DotNode:
		if inside {
			return nil, ""
		}
	case *parse.FieldNode:
		if !inside {
			name = n.String()
		}
	case *parse.VariableNode:
		name = strings.TrimPrefix(n.String(), "$")
	}
	if slices.Contains(o.Fields(), name) {
		return nil, ""
	}
	if inside {
		return p, fmt.Sprintf("there is no %s here: inside of a with, {{.}} is its value, and {{$.Name}} is the name", p)
	}
	return p, fmt.Sprintf("there is no field {{%s}}; %s", p, o.known())
}

// known returns a list of the fields for an error.
func (o Own) known() string {
	var all []string
	for _, f := range o.Fields() {
		all = append(all, "{{"+f+"}}")
	}
	return "there is " + strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}

// Errors of text/template for a source that it cannot parse.
var (
	parseFault   = core.Pattern(`(?s)^template: [^:]*:(\d+):(?:\d+:)? (.*)$`)
	unknownWord  = core.Pattern(`^function "([^"]+)" not defined$`)
	unclosedPart = core.Pattern(`^unclosed action(?: started at [^:]*:(\d+))?$`)
)

// fault returns a parser's error with its line, without the parser's own names.
func (o Own) fault(err error) error {
	m := parseFault().FindStringSubmatch(err.Error())
	if m == nil {
		return core.Errorf(core.Invalid, "the text cannot be read: %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	line, what := m[1], m[2]
	if f := unknownWord().FindStringSubmatch(what); f != nil {
		what = "{{" + f[1] + "}} has no meaning here; " + o.known()
	} else if f := unclosedPart().FindStringSubmatch(what); f != nil {
		if f[1] != "" {
			line = f[1]
		}
		what = "braces that are opened there with {{ are not closed with }}"
	} else if what == "unexpected EOF" {
		what = "the text ends before an {{end}} has closed its {{if}} or {{with}}"
	}
	return core.Errorf(core.Invalid, "line %s: %s", line, what)
}
