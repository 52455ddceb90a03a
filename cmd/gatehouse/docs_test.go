package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository is the top directory of the repository, relative to this package.
const repository = "../.."

var (
	testName   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
	makeTarget = regexp.MustCompile("`make ([a-z-]+)(?: [^`]*)?`")
)

// tests returns the names of all test functions of the repository, whatever their
// build tags.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range tree.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestEveryTestAndTargetThatTheDocumentsNameExists(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	known, named := tests(t), 0
	for _, page := range append(pages, filepath.Join(repository, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			if named++; !known[m[1]] {
				t.Errorf("%s names the test %s, which does not exist", page, m[1])
			}
		}
		for _, m := range makeTarget.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s names the target %s, which the Makefile does not have", page, m[1])
			}
		}
	}
	if named < 40 {
		t.Errorf("only %d tests are named: are the pages read as they are written?", named)
	}
}

var (
	link       = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	fenced     = regexp.MustCompile("(?ms)^```.*?^```")
	headline   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInHeads = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the fragments of a page's headings, as Git hosts derive them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range headline.FindAllStringSubmatch(text, -1) {
		head := notInHeads.ReplaceAllString(strings.ToLower(m[1]), "")
		found["#"+strings.ReplaceAll(head, " ", "-")] = true
	}
	return found
}

func TestEveryLinkBetweenTheDocumentsLeadsToAFileAndAHeading(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal("no documents", err)
	}
	listed, err := os.ReadFile(filepath.Join(repository, "docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(listed), "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
	for _, top := range []string{"README.md", "CHANGELOG.md"} {
		pages = append(pages, filepath.Join(repository, top))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			to := page
			if match[1] != "" {
				to = filepath.Join(filepath.Dir(page), match[1])
			}
			target, err := os.ReadFile(to)
			if info, statErr := os.Stat(to); err != nil && (statErr != nil || !info.IsDir()) {
				t.Errorf("%s links to %s, which does not exist", page, match[1])
			} else if match[2] != "" && !anchors(string(target))[match[2]] {
				t.Errorf("%s links to %s%s: no such heading", page, match[1], match[2])
			}
		}
	}
}
