package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository is the top folder, seen from this package.
const repository = "../.."

var quoted = regexp.MustCompile("`([^`]+)`")

// testsOf names the tests, fuzz targets and benchmarks of one package, whatever
// their build tags.
func testsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range tree.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

// isTest says whether a word in backticks is the name of a test; "TestDoctor…"
// stands for all that begin so.
func isTest(word string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Benchmark"} {
		if strings.HasPrefix(word, prefix) && len(word) > len(prefix) {
			return true
		}
	}
	return false
}

// isScript says whether a word names a check that is no Go test: a target of
// the Makefile or a script beside .ci/run.
func isScript(t *testing.T, word string) bool {
	t.Helper()
	if strings.HasPrefix(word, ".ci/") {
		_, err := os.Stat(filepath.Join(repository, word))
		return err == nil
	}
	target, ok := strings.CutPrefix(word, "make ")
	if !ok {
		return false
	}
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(makefile), "\n"+target+":")
}

func TestEveryTestThatTheDocumentsNameExists(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{}
	rows, section, empty := 0, "", false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			if empty {
				t.Errorf("the section %q is empty", section)
			}
			section, empty = title, true
			continue
		}
		empty = empty && line == ""
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "|") || len(cells) < 2 || strings.TrimSpace(cells[0]) == "claim" {
			continue
		}
		rows++
		pkg, named := "", 0
		for _, match := range quoted.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			word := match[1]
			if isScript(t, word) {
				named++
				continue
			}
			if !isTest(word) {
				pkg = word
				if known[pkg] == nil {
					known[pkg] = testsOf(t, pkg)
				}
				if len(known[pkg]) == 0 {
					t.Errorf("%q: the package %s has no tests", cells[0], pkg)
				}
				continue
			}
			named++
			if !holds(known[pkg], word) {
				t.Errorf("%q: %s has no test %s", cells[0], pkg, word)
			}
		}
		if named == 0 {
			t.Errorf("%q names no test", cells[0])
		}
	}
	if rows < 100 {
		t.Errorf("only %d claims were found: is the page read as it is written?", rows)
	}
}

func holds(names map[string]bool, word string) bool {
	prefix, some := strings.CutSuffix(word, "…")
	if !some {
		return names[word]
	}
	for name := range names {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)

func TestEveryLinkBetweenTheDocumentsLeadsToAFile(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal("no documents", err)
	}
	for _, top := range []string{"README.md", "CHANGELOG.md"} {
		pages = append(pages, filepath.Join(repository, top))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, match[1])
			}
		}
	}
}
