package texts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A goFile is a file of the program, without tests and without what only tests use.
type goFile struct {
	name string // from the root, with slashes
	tree *ast.File
	set  *token.FileSet
}

func (f goFile) at(n ast.Node) string {
	return f.name + ":" + strconv.Itoa(f.set.Position(n.Pos()).Line)
}

// program are the files of the program that may say something to people in
// chat. Pages and the API speak for themselves.
func program(t *testing.T) (out []goFile) {
	t.Helper()
	root := filepath.Join("..", "..")
	for _, dir := range []string{"core", "connectors", "pairing", "cmd/gatehouse"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || strings.HasSuffix(d.Name(), "test") || d.Name() == "phones"):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			rel, _ := filepath.Rel(root, path)
			out = append(out, goFile{filepath.ToSlash(rel), tree, set})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// inFamilies are the texts that are looked up by a name which stands beside
// something else, by the file that does it and how their names begin.
var inFamilies = map[string]string{"core/attach/kind.go": "program_", "connectors/chat/help/help.go": "help_"}

// Whoever says a text names it, and gives it just the values that it fills in;
// and there is none that nobody says.
func TestEveryTextIsSaidSomewhereWithJustItsValues(t *testing.T) {
	all, told := map[string][]string{}, map[string]bool{}
	for _, source := range []string{commands, asks, runs, councilNotes, files, journal, memory} {
		for name, x := range parsed(t, source) {
			all[name] = fields(x)
		}
	}
	quoted := map[string]bool{} // in the gate's code
	for _, f := range program(t) {
		for _, c := range sayings(f) {
			if prefix := inFamilies[f.name]; prefix != "" && c.name == "" {
				for name := range all {
					told[name] = told[name] || strings.HasPrefix(name, prefix)
				}
				continue
			}
			have, known := all[c.name]
			switch told[c.name] = true; {
			case c.name == "" || c.with == nil:
				t.Errorf("%s: the name of a text and its values are written where it is said", c.at)
			case !known:
				t.Errorf("%s: there is no text %q", c.at, c.name)
			case !slices.Equal(have, c.with):
				t.Errorf("%s: the text %s fills in %v and is given %v", c.at, c.name, have, c.with)
			}
		}
		if strings.HasPrefix(f.name, "pairing/") || strings.HasPrefix(f.name, "core/permission/raise/") || filepath.ToSlash(filepath.Dir(f.name)) == "core" {
			ast.Inspect(f.tree, func(n ast.Node) bool {
				quoted[literal(n)] = true
				return true
			})
		}
	}
	for _, name := range namesIn(t, gate) {
		if !quoted[name] {
			t.Errorf("the gate's text %s is said by nobody", name)
		}
	}
	for name := range all {
		if !told[name] {
			t.Errorf("the text %s is said by nobody", name)
		}
	}
}

// A saying is a call that takes a text out of the catalogue.
type saying struct {
	at, name string   // "" where the name is not written there
	with     []string // names of the values; nil where they are not written there
}

func sayings(f goFile) (out []saying) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || c.Ellipsis.IsValid() { // a helper hands on what it was given
			return true
		}
		first := 0
		switch name := called(c); {
		case name == "texts.Text", name == "command.Respond", name == "Text" && f.tree.Name.Name == "texts":
		case name == "texts.Error":
			first = 1
		default:
			return true
		}
		s := saying{at: f.at(c), name: literal(c.Args[first]), with: []string{}}
		for _, a := range c.Args[first+1:] {
			s.with = keys(a)
		}
		out = append(out, s)
		return true
	})
	return out
}

// called is how a call names what it calls: "f" or "x.f".
func called(c *ast.CallExpr) string {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			return x.Name + "." + fun.Sel.Name
		}
		return "." + fun.Sel.Name
	}
	return ""
}

// keys are those of a map that is written there, sorted; nil for anything else.
func keys(e ast.Expr) []string {
	m, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	found := map[string]bool{}
	for _, x := range m.Elts {
		kv, ok := x.(*ast.KeyValueExpr)
		if !ok || literal(kv.Key) == "" {
			return nil
		}
		found[literal(kv.Key)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// literal is what a string in the source says; "" for anything else.
func literal(n ast.Node) string {
	b, ok := n.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(b.Value)
	return s
}

// reading are the values that people in chat read, by type and field.
var reading = map[string][]string{
	"Part": {"Text"}, "Button": {"Label"}, "Outcome": {"Text"}, "Fault": {"Text"}, "Failed": {"Message"}, "Aborted": {"Message"},
	"Form": {"Title"}, "Field": {"Label", "About", "Hint"}, "selectMenu": {"Placeholder"}, "slash": {"Description"}, "slashOption": {"Description"},
}

// telling are functions whose words people in chat read.
var telling = []string{".closeAsk", ".letIn", ".unread", "connectors.NotSent", "whisper", "full"}

var (
	words    = regexp.MustCompile(`\pL{2,}`)
	sentence = regexp.MustCompile(`\pL[\pL,.:;']* +\pL`)
)

// A word for people that stands in the code is missed by whoever changes or
// translates the catalogue.
func TestNothingIsSaidToPeopleNextToTheCatalogue(t *testing.T) {
	looked := 0
	for _, f := range program(t) {
		if dir := filepath.ToSlash(filepath.Dir(f.name)); dir == "core/agent" || dir == "core/llm/embed" { // their faults are shown to operators, not in chat
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			for _, e := range read(n) {
				looked++
				if s := spoken(e, words); s != "" {
					t.Errorf("%s: %q is read by people in chat: it belongs into core/texts", f.at(e), s)
				}
			}
			return true
		})
	}
	if looked < 40 {
		t.Errorf("only %d places were looked at where something is said", looked)
	}
}

// read are the expressions in n, not below it, whose words people read.
func read(n ast.Node) (out []ast.Expr) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		name := ""
		switch typ := n.Type.(type) {
		case *ast.Ident:
			name = typ.Name
		case *ast.SelectorExpr:
			name = typ.Sel.Name
		}
		for _, x := range n.Elts {
			if kv, ok := x.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok && (slices.Contains(reading[name], key.Name) || name == "" && key.Name == "Label") {
					out = append(out, kv.Value)
				}
			}
		}
	case *ast.CallExpr:
		name := called(n)
		if i := strings.IndexByte(name, '.'); slices.Contains(telling, name) || i > 0 && slices.Contains(telling, name[i:]) {
			out = append(out, n.Args...)
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			sel, ok := to.(*ast.SelectorExpr)
			if ok && len(n.Lhs) == len(n.Rhs) && slices.Contains([]string{"Refused", "Label", "Placeholder"}, sel.Sel.Name) {
				out = append(out, n.Rhs[i])
			}
		}
	}
	return out
}

// spoken is the first string in e that looks like something said, but for what
// is asked of the catalogue or of another function.
func spoken(e ast.Expr, like *regexp.Regexp) (found string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && called(c) != "fmt.Sprintf" {
			return false
		}
		if s := literal(n); found == "" && like.MatchString(s) {
			found = s
		}
		return found == ""
	})
	return found
}

// What a platform's message is, where it can't be read, is told by name: each
// kind that connectors know has its words.
func TestEveryKindOfMessageThatCanNotBeReadHasItsWords(t *testing.T) {
	kinds := map[string]bool{}
	for _, f := range program(t) {
		if !strings.HasPrefix(f.name, "connectors/") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl: // they give a kind
				return n.Name.Name != "unread" && n.Name.Name != "kind" && n.Name.Name != "Kind" || !noted(kinds, n.Body)
			case *ast.AssignStmt:
				if to, ok := n.Lhs[0].(*ast.Ident); ok && to.Name == "kind" {
					noted(kinds, n.Rhs[0])
				}
			}
			return true
		})
	}
	general := Text("unsupported", With{"Kind": "nothing that is known"})
	for kind := range kinds {
		if got := Text("unsupported", With{"Kind": kind}); got == general || !strings.Contains(got, kind) {
			t.Errorf("of a %s it is said %q", kind, got)
		}
	}
	if len(kinds) < 7 {
		t.Errorf("connectors know only %v", slices.Sorted(maps.Keys(kinds)))
	}
}

// noted puts the strings of n into all.
func noted(all map[string]bool, n ast.Node) bool {
	ast.Inspect(n, func(n ast.Node) bool {
		if s := literal(n); s != "" {
			all[s] = true
		}
		return true
	})
	return true
}

// inChat are the files whose every sentence is for people in chat.
var inChat = regexp.MustCompile(`^connectors/chat/(ask/)?\w+\.go$|^core/dispatch/\w+\.go$|^connectors/files\.go$|^core/permission/suggest\.go$`)

// notSaid are calls whose words are for the log, or the database.
var notSaid = regexp.MustCompile(`^(errors\.New|fmt\.Errorf|panic)$|\.(Debug|Info|Warn|Error)(Context)?$|\.(Get|Select|Exec|Format|note)$`)

// exempt are what else is no sentence.
var exempt = []string{"voice message"} // what connectors call one kind of message

func TestNoSentenceIsInTheCodeOfTheChat(t *testing.T) {
	looked := 0
	for _, f := range program(t) {
		if !inChat.MatchString(f.name) {
			continue
		}
		looked++
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				return !notSaid.MatchString(called(n)) || strings.HasPrefix(called(n), "texts.")
			case *ast.Field: // its tag
				return false
			}
			if s := literal(n); sentence.MatchString(s) && !slices.Contains(exempt, s) {
				t.Errorf("%s: %q belongs into core/texts", f.at(n), s)
			}
			return true
		})
	}
	if looked < 18 {
		t.Errorf("only %d files were looked at", looked)
	}
}
