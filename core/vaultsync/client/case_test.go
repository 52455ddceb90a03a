package client_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/vaultsync/client"
)

// pulls counts requests for files.
type pulls struct{ n int }

func (p *pulls) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/pull") {
		p.n++
	}
	return http.DefaultTransport.RoundTrip(r)
}

// caseless has a directory take the names for one while a file is written, as a file system does
// that is case-insensitive; the directory lists the first alone.
func caseless(t *testing.T, dir, name, other string) (step func(string), end func()) {
	t.Helper()
	end = func() {
		if err := os.Remove(filepath.Join(dir, other)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, other)); err == nil { // it is one
		return nil, func() {}
	}
	return func(what string) {
		if what != "whole" {
			return
		}
		if err := os.Link(filepath.Join(dir, name), filepath.Join(dir, other)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}, end
}

// The second is not fetched again and again.
func TestOnce_ANameThatDiffersInCaseAloneIsReported(t *testing.T) {
	s, a, _ := pair(t)
	write(t, a.dir, "Tea.md", "green")
	a.sync(t)
	write(t, s.dir, "tea.md", "black")
	if got := tree(t, s.dir); len(got) != 2 {
		t.Skip("the server's file system is case-insensitive")
	}
	step, end := caseless(t, a.dir, "Tea.md", "tea.md")
	a.o.Step = step
	line := &pulls{}
	a.o.HTTP = &http.Client{Transport: line}
	c, err := client.Open(a.o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := []string{"tea.md: this folder takes its name for that of Tea.md, from which it differs in case or spelling alone: rename one of them"}
	for range 3 {
		r := once(t, c)
		end()
		if !slices.Equal(r.Errors, want) || r.Fetched+r.Sent+r.DeletedOut != 0 || line.n != 1 {
			t.Errorf("%+v with %d requests", r, line.n)
		}
	}
	if err := os.Rename(filepath.Join(s.dir, "tea.md"), filepath.Join(s.dir, "black tea.md")); err != nil {
		t.Fatal(err)
	}
	a.o.Clock.(*coretest.Clock).Advance(time.Minute)
	if r := once(t, c); r.Fetched != 1 || len(r.Errors) != 0 {
		t.Errorf("%+v", r)
	}
	end()
	same(t, s.dir, a.dir)
}
