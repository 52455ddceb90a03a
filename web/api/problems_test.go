package api

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/web"
)

// usedTypes are the problem types that the program's code answers with: by name
// of their variable, or by slug where a package below names its fault.
func usedTypes(t *testing.T) map[string]bool {
	t.Helper()
	names, idents, slugs := map[string]string{}, map[string]bool{}, map[string]bool{}
	read := func(path string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "Problem" && n.Body != nil { // an error that names its own
					if ret, ok := n.Body.List[0].(*ast.ReturnStmt); ok {
						if lit, ok := ret.Results[0].(*ast.BasicLit); ok {
							slug, _ := strconv.Unquote(lit.Value)
							slugs[slug] = true
						}
					}
				}
				return n.Name.Name != "Faults" // lists them all
			case *ast.ValueSpec:
				for i, v := range n.Values {
					lit, ok := v.(*ast.CompositeLit)
					if !ok || path != "problem.go" {
						continue
					}
					if id, ok := lit.Type.(*ast.Ident); ok && id.Name == "Fault" {
						names[n.Names[i].Name], _ = strconv.Unquote(lit.Elts[0].(*ast.BasicLit).Value)
						return false // a declaration is no use
					}
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "web" {
					idents[n.Sel.Name] = true
				}
			case *ast.Ident:
				idents[n.Name] = idents[n.Name] || !strings.Contains(path, "/") // package web itself
			case *ast.CallExpr:
				if x, ok := n.Fun.(*ast.Ident); ok && x.Name == "refuse" && len(n.Args) > 0 {
					if lit, ok := n.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						slug, _ := strconv.Unquote(lit.Value)
						slugs[slug] = true
					}
				}
			}
			return true
		})
	}
	root := os.DirFS("../..")
	for _, top := range []string{"web", "admin", "core", "cmd/gatehouse"} {
		err := fs.WalkDir(root, top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, 0)
			if err == nil {
				read(strings.TrimPrefix(path, "web/"), f)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	used := slugs
	for name, slug := range names {
		if idents[name] {
			used[slug] = true
		}
	}
	return used
}

func TestEveryProblemTypeInUseHasAPageAndNoOther(t *testing.T) {
	h := open(t, options{})
	used := usedTypes(t)
	var listed, inDocument []string
	for _, f := range web.Faults() {
		listed = append(listed, f.Slug)
		if !used[f.Slug] {
			t.Errorf("nothing answers with %s", f.Slug)
		}
	}
	for slug := range used {
		if !slices.Contains(listed, slug) {
			t.Errorf("%s is used and has no page", slug)
		}
	}
	for _, v := range h.seen.doc.Components.Schemas["Problem"].Value.Properties["type"].Value.Enum {
		inDocument = append(inDocument, strings.TrimPrefix(v.(string), "/docs/problems/"))
	}
	if !slices.Equal(listed, inDocument) {
		t.Errorf("the document lists the types\n%q, the program\n%q", inDocument, listed)
	}
	files, err := filepath.Glob("problems/*.md")
	if err != nil || len(files) != len(listed) {
		t.Errorf("%d files for %d types, %v", len(files), len(listed), err)
	}
	h.want(404, "not-found", "", "GET", "/docs/problems/nonsense", "")
}

// The address in a problem is that of a page which explains it, with an
// example that is one: valid by the document, of this type, status and title.
func TestTheAddressInAProblemIsThePageThatExplainsIt(t *testing.T) {
	h := open(t, options{})
	for _, f := range web.Faults() {
		page := readAll(t, h.do("", "GET", f.Type(), ""))
		for _, want := range []string{"# " + f.Title + "\n", f.About, "## What it means", "## What to do", "## Example"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %s", f.Slug, want)
			}
		}
		_, example, _ := strings.Cut(page, "```json\n")
		example, _, _ = strings.Cut(example, "```")
		var body map[string]any
		if err := json.Unmarshal([]byte(example), &body); err != nil {
			t.Errorf("the example of %s: %v", f.Slug, err)
			continue
		}
		schema := "Problem"
		if body["request_status"] != nil {
			schema = "Decided"
		}
		if err := h.seen.doc.Components.Schemas[schema].Value.VisitJSON(body); err != nil {
			t.Errorf("the example of %s: %v", f.Slug, err)
		}
		if body["type"] != f.Type() || body["title"] != f.Title || body["status"] != float64(f.Status) || !strings.Contains(page, "HTTP/1.1 "+strconv.Itoa(f.Status)+" ") {
			t.Errorf("the example of %s is %v", f.Slug, body)
		}
	}
}
