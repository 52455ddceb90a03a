// Package frontmatter reads the YAML at the head of files that operators write,
// of agents, skills and workspaces, and reports faults by file and line.
package frontmatter

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A Fault is an error in a file.
type Fault struct {
	File string // in the vault
	Line int    // 0: the file as a whole
	Text string // one line, a sentence without a full stop; it repeats no value
}

// String returns "FILE:LINE: TEXT".
func (f Fault) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// maxFrontmatter bounds the part of a file that is read as YAML, in bytes.
const maxFrontmatter = 32 << 10

// A Header is the YAML at the head of a file, or a file of YAML.
type Header struct {
	File string
	text string
	top  int            // lines of the file above text
	line map[string]int // by key ("agent.tools"), in the file
	null map[string]bool
	node map[string]ast.Node // values at the top
	keys []string            // at the top, in their order
	body ast.Node            // of the first document
}

// Split returns the frontmatter and the body of a Markdown file.
func Split(file, text string) (*Header, string, *Fault) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return nil, "", &Fault{file, 1, "the file does not begin with frontmatter: a line of three dashes, fields, another such line"}
	}
	at := 0
	for line := range strings.Lines(rest) {
		if bare := strings.TrimRight(line, " \t\n"); bare == "---" || bare == "..." {
			h, fault := Read(file, rest[:at], 1)
			return h, strings.TrimSpace(rest[at+len(line):]), fault
		}
		at += len(line)
	}
	return nil, "", &Fault{file, 1, "the frontmatter has no end: a line of three dashes is missing"}
}

// Read parses text, which begins behind line top of the file, and finds the line
// of each key.
func Read(file, text string, top int) (*Header, *Fault) {
	h := &Header{File: file, text: text, top: top, line: map[string]int{}, null: map[string]bool{}, node: map[string]ast.Node{}}
	if len(text) > maxFrontmatter {
		return nil, &Fault{file, 1, fmt.Sprintf("the fields are longer than %d bytes", maxFrontmatter)}
	}
	var tree *ast.File
	if err := unbroken(func() (err error) { tree, err = parser.ParseBytes([]byte(text), 0); return err }); err != nil {
		return nil, h.fault(err)
	}
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if fault := h.simple(doc.Body); fault != nil {
			return nil, fault
		}
		if h.body == nil {
			h.body = doc.Body
		}
		h.note("", doc.Body, 0)
	}
	return h, nil
}

// simple refuses anchors and aliases, a few lines of which expand without limit,
// and tags, some of which make the decoder panic.
func (h *Header) simple(n ast.Node) *Fault {
	for _, t := range []ast.NodeType{ast.AnchorType, ast.AliasType, ast.MergeKeyType, ast.TagType} {
		if found := ast.Filter(t, n); len(found) > 0 {
			return &Fault{h.File, h.top + found[0].GetToken().Position.Line, "anchors, aliases and tags (& * and !) are not read here; quote such text"}
		}
	}
	return nil
}

// note stores the lines of the keys of a mapping and of the mappings in it.
func (h *Header) note(above string, n ast.Node, depth int) {
	for _, v := range pairs(n) {
		name := above + v.Key.GetToken().Value
		h.line[name] = h.top + v.Key.GetToken().Position.Line
		if above == "" {
			h.node[name] = v.Value
			h.keys = append(h.keys, name)
		}
		if _, null := v.Value.(*ast.NullNode); null {
			h.null[name] = true
		} else if depth < 3 {
			h.note(name+".", v.Value, depth+1)
		}
	}
}

// Decode fills into; a key that it does not know is a fault.
func (h *Header) Decode(into any) *Fault {
	return h.fault(unbroken(func() error { return yaml.UnmarshalWithOptions([]byte(h.text), into, yaml.Strict()) }))
}

// DecodeKnown is Decode, but ignores keys that into does not have: of files that other
// programs write.
func (h *Header) DecodeKnown(into any) *Fault {
	return h.fault(unbroken(func() error { return yaml.Unmarshal([]byte(h.text), into) }))
}

// DecodeKey fills into with the value of one top-level key.
func (h *Header) DecodeKey(key string, into any) *Fault {
	return h.fault(unbroken(func() error { return yaml.NodeToValue(h.node[key], into, yaml.Strict()) }))
}

// Keys returns the keys at the top, or those of the fields below one of them, in their
// order.
func (h *Header) Keys(below string) (keys []string) {
	if below == "" {
		return slices.Clone(h.keys)
	}
	for _, v := range pairs(h.node[below]) {
		keys = append(keys, v.Key.GetToken().Value)
	}
	return keys
}

// DecodeWithout is Decode, or with a name below DecodeKey, without the keys in left.
func (h *Header) DecodeWithout(below string, left []string, into any) *Fault {
	switch {
	case len(left) == 0 && below == "":
		return h.Decode(into)
	case len(left) == 0:
		return h.DecodeKey(below, into)
	}
	var rest *ast.MappingNode
	if m, ok := h.whole(below).(*ast.MappingNode); ok {
		copied := *m
		rest = &copied
		rest.Values = slices.DeleteFunc(slices.Clone(m.Values), func(v *ast.MappingValueNode) bool {
			return slices.Contains(left, v.Key.GetToken().Value)
		})
	}
	if rest == nil || len(rest.Values) == 0 { // the one key that there was is left out
		return nil
	}
	return h.fault(unbroken(func() error { return yaml.NodeToValue(rest, into, yaml.Strict()) }))
}

// whole returns the fields at the top, or those below one of them.
func (h *Header) whole(below string) ast.Node {
	if below == "" {
		return h.body
	}
	return h.node[below]
}

// pairs returns the fields of a mapping.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// unbroken returns a panic of the YAML library as an error: no file may end the
// gateway.
func unbroken(read func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read YAML: %v", p)
		}
	}()
	return read()
}

// Has reports whether a key is set, with or without a value. Keys of nested
// mappings are joined with dots.
func (h *Header) Has(key string) bool { return h.line[key] != 0 }

// Null reports whether a key is set without a value.
func (h *Header) Null(key string) bool { return h.null[key] }

// At returns a fault in the line of key, or of the header where the key is not set.
func (h *Header) At(key, format string, args ...any) *Fault {
	line := h.line[key]
	if line == 0 {
		line = h.top
	}
	return &Fault{h.File, line, fmt.Sprintf(format, args...)}
}

// NotNull reports keys without a value where that would be ambiguous.
func (h *Header) NotNull(keys ...string) *Fault {
	for _, k := range keys {
		if h.null[k] {
			return h.At(k, "%s has no value; leave the field out, or write [] for none", k)
		}
	}
	return nil
}

// A parser's message may repeat the file, and name Go's types.
var (
	quotedText = regexp.MustCompile("(?s)[\"'`].*[\"'`]")
	ofGo       = regexp.MustCompile(`^cannot unmarshal (\S+)(?: \{\})? into Go struct field \S+ of type (\S+)$`)
)

var plainTypes = map[string]string{
	"string": "text", "int": "a whole number", "uint64": "a number", "int64": "a number", "float64": "a number", "bool": "true or false",
	"[]string": "a list", "[]interface": "a list", "map[string]interface": "fields",
}

// fault returns the parser's error as a Fault, nil for nil.
func (h *Header) fault(err error) *Fault {
	if err == nil {
		return nil
	}
	f := &Fault{h.File, 0, "this is not YAML"}
	var e yaml.Error
	if !errors.As(err, &e) {
		return f
	}
	if t := e.GetToken(); t != nil && t.Position != nil {
		f.Line = h.top + t.Position.Line
	}
	var unknown *yaml.UnknownFieldError
	message := e.GetMessage()
	switch m := ofGo.FindStringSubmatch(message); {
	case errors.As(err, &unknown):
		f.Text = message + "; docs/agents.md lists those that there are"
	case m != nil && plainTypes[m[1]] != "" && plainTypes[m[2]] != "":
		f.Text = fmt.Sprintf("%s is set where %s is expected", plainTypes[m[1]], plainTypes[m[2]])
	default:
		f.Text += ": " + quotedText.ReplaceAllString(message, "…")
	}
	f.Text = strings.Join(strings.Fields(f.Text), " ") // a key may span lines
	return f
}

// A List is a field that is a list, a text with commas, or "all".
type List struct {
	all   bool
	Items []string
}

// UnmarshalYAML takes each of the three forms.
func (l *List) UnmarshalYAML(read func(any) error) error {
	var words []string
	if read(&words) != nil {
		var s string
		if err := read(&s); err != nil {
			return err
		}
		words = strings.Split(s, ",")
		l.all = strings.TrimSpace(s) == "all"
	}
	l.Items = []string{}
	for _, w := range words {
		if w = strings.TrimSpace(w); w != "" {
			l.Items = append(l.Items, w)
		}
	}
	return nil
}

// Values returns the items, never nil; nil for "all" and for a field that is not set.
func (l *List) Values() []string {
	if l == nil || l.all {
		return nil
	}
	return l.Items
}

// Globs reports patterns that are invalid or lead out of the vault.
func (h *Header) Globs(key string, patterns []string) *Fault {
	for _, p := range patterns {
		switch {
		case p == "" || !doublestar.ValidatePattern(p):
			return h.At(key, "%s holds a glob that is none", key)
		case strings.HasPrefix(p, "/") || strings.HasPrefix("/"+p+"/", "/../") || strings.Contains(p, "/../"):
			return h.At(key, "%s holds a glob that is not relative to the vault", key)
		}
	}
	return nil
}
