package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a reader can hold in the head, in lines, comments counted and tests not.
const (
	mostInPackage = 2000
	mostInFile    = 400
	mostMethods   = 4 // of an interface
)

// larger are the packages of more lines than that, each with its reason. A
// package that grows past the limit is split, or its reason is given here.
var larger = map[string]string{
	"cmd/gatehouse":                    "it builds every part and joins it to the others, each in a few lines; nothing imports it",
	"connectors/discord/discordtest":   "a platform's API played in full, limits and refusals included, a file for each group of methods",
	"connectors/telegram/telegramtest": "a platform's API played in full, limits and refusals included, a file for each group of methods",
	"core/orchestrator":                "one run from its claim to its end; what ends it must know all of it",
	"core/session":                     "a session, the chat that it is bound to and the ids that clients gave it change in one transaction",
}

// wider are the interfaces of more methods than that, each with its reason.
var wider = map[string]string{
	"crowd.simulator": "all that the load tool asks of a simulated platform; each has one type that meets it",
	"answer.Writer":   "an answer, whole or as a stream: opened, grown, failed, finished, closed",
}

// TestSizesAreHeldOrExplained holds packages, files and interfaces to a size.
func TestSizesAreHeldOrExplained(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	lines, wide := map[string]int{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		if d != nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "clienttest" || strings.HasPrefix(d.Name(), ".") && rel != ".") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		n := bytes.Count(b, []byte("\n"))
		if n > mostInFile {
			t.Errorf("%s has %d lines, want at most %d: split it", rel, n, mostInFile)
		}
		lines[filepath.ToSlash(filepath.Dir(rel))] += n
		for _, name := range interfaces(t, path, b) {
			wide[name] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, n := range lines {
		if n > mostInPackage && larger[pkg] == "" {
			t.Errorf("%s has %d lines, want at most %d: split it, or say in the table why not", pkg, n, mostInPackage)
		}
	}
	for pkg := range larger {
		if lines[pkg] <= mostInPackage {
			t.Errorf("the table explains the size of %s, which has %d lines", pkg, lines[pkg])
		}
	}
	for name := range wide {
		if wider[name] == "" {
			t.Errorf("the interface %s has more than %d methods: split it, or say in the table why not", name, mostMethods)
		}
	}
	for name := range wider {
		if !wide[name] {
			t.Errorf("the table explains the interface %s, which is not wide", name)
		}
	}
}

// interfaces are the names of a file's interfaces with too many methods.
func interfaces(t *testing.T, path string, text []byte) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if ts, ok := n.(*ast.TypeSpec); ok {
			if it, ok := ts.Type.(*ast.InterfaceType); ok && len(it.Methods.List) > mostMethods {
				names = append(names, f.Name.Name+"."+ts.Name.Name)
			}
		}
		return true
	})
	return names
}
