package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/configs"
	"gatehouse/web/api/find"
)

// searches runs the command on a gateway that answers with pages in turn, and returns
// what it printed and the queries that it sent.
func searches(t *testing.T, c Search, pages ...find.Page) (stdout, stderr string, sent []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("GATEHOUSE_VAULT_PATH", dir)
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run"))
	gateway := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/projects" {
			_, _ = io.WriteString(w, `{"projects":[{"project_id":"6c1d5e0a-8f7b-4a52-9d1e-0b7a3f2c4d5e","name":"Garden"},{"project_id":"p2","name":"Tax"}]}`)
			return
		}
		if r.URL.Path != "/api/search" || len(sent) == len(pages) {
			t.Errorf("%s, after %q", r.URL, sent)
			return
		}
		_ = json.NewEncoder(w).Encode(pages[len(sent)])
		sent = append(sent, r.URL.Query().Encode())
	})
	var out, errs strings.Builder
	p := &console.Process{Context: t.Context(), Stdout: &out, Stderr: &errs, Open: func(context.Context, *configs.Config) (http.Handler, func() error, error) {
		return gateway, func() error { return nil }, nil
	}}
	if err := c.Run(p); err != nil {
		return out.String(), err.Error(), sent
	}
	return out.String(), errs.String(), sent
}

func documents(from, n int) (hits []find.Hit) {
	for i := range n {
		hits = append(hits, find.Hit{Type: "document", ID: "doc:0", Title: "Tea", Path: fmt.Sprintf("Notes/%d.md", from+i), Line: 3, Excerpt: "green tea"})
	}
	return hits
}

func TestSearch_ReadsShortPagesUpToTheLimit(t *testing.T) {
	out, errs, sent := searches(t, Search{Words: []string{"green", "tea"}, Type: []string{"document"}, Folder: "Notes", Limit: 5},
		find.Page{Hits: documents(0, 2), Next: "a"}, find.Page{Next: "b"}, find.Page{Hits: documents(2, 3), Next: "c"})
	if n := strings.Count(out, "green tea"); n != 5 || !strings.Contains(out, "Notes/4.md:3  Tea\n    green tea\n") {
		t.Errorf("%d hits: %s", n, out)
	}
	want := []string{"folder=Notes&limit=5&q=green+tea&type=document", "cursor=a&folder=Notes&limit=3&q=green+tea&type=document", "cursor=b&folder=Notes&limit=3&q=green+tea&type=document"}
	if fmt.Sprint(sent) != fmt.Sprint(want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	if !strings.Contains(errs, "There may be more") {
		t.Errorf("stderr %q", errs)
	}
	if _, errs, _ = searches(t, Search{Words: []string{"tea"}, Limit: 5}, find.Page{Hits: documents(0, 5)}); strings.Contains(errs, "more") {
		t.Errorf("at the end: %q", errs)
	}
}

func TestSearch_IsOfAProjectByItsNameOrID(t *testing.T) {
	for given, want := range map[string]string{"garden": "6c1d5e0a-8f7b-4a52-9d1e-0b7a3f2c4d5e", "p2": "p2", "11111111-1111-4111-8111-111111111111": "11111111-1111-4111-8111-111111111111"} {
		if _, _, sent := searches(t, Search{Words: []string{"tea"}, Project: given, Limit: 5}, find.Page{}); len(sent) != 1 || sent[0] != "limit=5&project="+want+"&q=tea" {
			t.Errorf("%s: sent %q", given, sent)
		}
	}
	if _, errs, sent := searches(t, Search{Words: []string{"tea"}, Project: "Shed", Limit: 5}, find.Page{}); len(sent) != 0 || errs != "you have no project Shed; yours are Garden, Tax" {
		t.Errorf("%q, sent %q", errs, sent)
	}
}

func TestSearch_PrintsTheAPIsAnswerAsJSON(t *testing.T) {
	out, _, _ := searches(t, Search{Words: []string{"tea"}, Limit: 5, JSON: true}, find.Page{Hits: documents(0, 1), Next: "a"}, find.Page{Hits: documents(1, 1)})
	var page find.Page
	if err := json.Unmarshal([]byte(out), &page); err != nil || len(page.Hits) != 2 || page.Hits[1].Path != "Notes/1.md" || page.Next != "" {
		t.Errorf("%v %s", err, out)
	}
	if out, _, _ = searches(t, Search{Words: []string{"tea"}, Limit: 5, JSON: true}, find.Page{}); !strings.Contains(out, `"hits": []`) {
		t.Errorf("no hits: %s", out)
	}
}

func TestSearch_PrintsNoControlCharactersOfHostileContents(t *testing.T) {
	out, _, _ := searches(t, Search{Words: []string{"tea"}, Limit: 5}, find.Page{Hits: []find.Hit{
		{Type: "document", Title: "A\x1b[2J\u202etitle", Path: "Notes/\x1b]0;x\a\nb.md", Line: 1, Excerpt: "tea \x1b[31m\u202e and\rmore"},
		{Type: "session", ID: "s1", Title: "Breakfast", Excerpt: strings.Repeat("tea ", 40)},
	}})
	if strings.ContainsAny(out, "\x1b\a\r\u202e") || strings.Count(out, "\n") != 4 {
		t.Errorf("%q", out)
	}
	for _, want := range []string{`Notes/\u{1B}]0;x\u{7}`, "A[2Jtitle", "    tea [31m and more\n", "s1  Breakfast\n", strings.Repeat(" tea", 40) + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in %q", want, out)
		}
	}
}
