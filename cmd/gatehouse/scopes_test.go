package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"gatehouse/cmd/gatehouse/commands/period"
	"gatehouse/web/auth"
)

// scopesIn returns the words of text in backticks that are scopes, in order, each once.
func scopesIn(text string) (found []string) {
	for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(text, -1) {
		if slices.Contains(auth.Scopes(), m[1]) && !slices.Contains(found, m[1]) {
			found = append(found, m[1])
		}
	}
	return found
}

// Every list of the scopes that a reader finds has all of them: in the documents, in the
// explanations of errors, in OpenAPI, in the help, and in the panel.
func TestEveryListOfScopesHasAllScopes(t *testing.T) {
	t.Parallel()
	all := auth.Scopes()
	read := func(path string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(repository, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	lists := 0
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	problems, err := filepath.Glob(filepath.Join(repository, "web", "api", "problems", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, problems...) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`(?m)^(\|.*)?\n`).ReplaceAllString(fenced.ReplaceAllString(string(b), ""), ". ") // neither tables nor examples
		for _, sentence := range strings.Split(strings.ReplaceAll(text, "\n", " "), ". ") {
			if found := scopesIn(sentence); len(found) > 3 && strings.Contains(sentence, "scope") {
				if lists++; len(found) != len(all) {
					t.Errorf("%s has %v, want %v: %.300s", filepath.Base(page), found, all, sentence)
				}
			}
		}
	}
	if lists < 2 {
		t.Errorf("%d lists were found, want those of operations.md and forbidden.md", lists)
	}
	if want := "enum: [" + strings.Join(all, ", ") + "]"; !strings.Contains(read("web/api/openapi.yaml"), want) {
		t.Errorf("openapi.yaml has no %q", want)
	}
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(read("docs/api.md"), -1) {
		rows = append(rows, m[1])
	}
	if !strings.Contains(strings.Join(rows, " "), strings.Join(all, " ")) {
		t.Errorf("the table of docs/api.md has %v, want %v", rows, all)
	}

	var c command
	p, err := kong.New(&c, period.Option())
	if err != nil {
		t.Fatal(err)
	}
	k, err := kong.Trace(p, []string{"keys", "create"})
	if err != nil {
		t.Fatal(err)
	}
	help := ""
	for _, f := range k.Flags() {
		if f.Name == "scope" {
			help = f.Help
		}
	}
	if want := strings.Join(all, ", "); !strings.Contains(help, want) {
		t.Errorf("the help of keys create --scope is %q, want %q in it", help, want)
	}

	b := newWorld(t, nil).browser()
	page := b.page("/admin/settings/access?open=new")
	for _, scope := range all {
		if !strings.Contains(page, `name="scope" value="`+scope+`"`) {
			t.Errorf("the panel's form for a key lacks %s", scope)
		}
	}
}
