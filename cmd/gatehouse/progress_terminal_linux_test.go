package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/core/coretest"
	"gatehouse/core/importer/importertest"
)

// onTerminal runs a command whose errors and progress go to a terminal, and returns what
// that has shown.
func (h *home) onTerminal(args ...string) (code int, stdout, screen string) {
	h.t.Helper()
	person, program := openTerminal(h.t)
	shown, ended := &coretest.Log{}, make(chan struct{})
	go func() { defer close(ended); _, _ = io.Copy(shown, person) }()
	p := h.start(func(c *exec.Cmd) { c.Stderr = program }, args...)
	code = p.end()
	_ = program.Close() // the last who has it open
	<-ended
	return code, p.out.String(), shown.String()
}

// wantRising reports progress that shows no numbers, other totals than one, or numbers that fall
// or pass the total.
func wantRising(t *testing.T, screen string, line *regexp.Regexp, least int) {
	t.Helper()
	var done []int
	totals := map[string]bool{}
	all := 0
	for _, m := range line.FindAllStringSubmatch(screen, -1) {
		n, _ := strconv.Atoi(m[1])
		done = append(done, n)
		all, _ = strconv.Atoi(m[2])
		totals[m[2]] = true
	}
	if distinct := slices.Compact(slices.Clone(done)); len(distinct) < least || !slices.IsSorted(done) || len(totals) != 1 || done[len(done)-1] > all {
		t.Errorf("it shows %d of %v:\n%q", done, totals, screen)
	}
}

// erased ends a line of progress, so that the result replaces it.
const erased = "\r\x1b[K"

func TestReindexSearch_ShowsItsProgressOnATerminal(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	text := strings.Repeat(strings.Repeat("some words of a note ", 60)+"\n\n", 40)
	for i := range 150 { // some three seconds
		name := filepath.Join(h.vault(), fmt.Sprintf("%03d.md", i))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, screen := h.onTerminal("reindex", "--search"); code != exitClean || !strings.Contains(out, "Indexed:") || strings.Contains(screen, "[#") {
		t.Fatalf("the first time: %d %s%s", code, out, screen)
	}
	code, out, screen := h.onTerminal("reindex", "--search")
	if code != exitClean || !strings.Contains(out, "Indexed:") || !strings.HasSuffix(screen, erased) {
		t.Errorf("%d %s%q", code, out, screen)
	}
	wantRising(t, screen, regexp.MustCompile(`indexing: \[#*-*\] (\d+) of (\d+) files`), 1)
}

// export writes an export of Claude with n conversations of some 20 kB.
func (h *home) export(n int) (name string) {
	h.t.Helper()
	name = filepath.Join(h.dir, "export.json")
	f, err := os.Create(name)
	if err != nil {
		h.t.Fatal(err)
	}
	m := importertest.New(1)
	m.Text = 1000
	if err := errors.Join(m.Claude(f, n), f.Close()); err != nil {
		h.t.Fatal(err)
	}
	return name
}

func TestImport_ShowsItsProgressInBytesOnATerminal(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.serve(nil)
	name := h.export(250)
	code, out, screen := h.onTerminal("import", name)
	if code != exitClean || !strings.Contains(out, "250 added") || !strings.HasSuffix(screen, erased) {
		t.Errorf("%d %s%q", code, out, screen)
	}
	// "120 conversations, 1.2 MB of 4.5 MB (27 %)"
	var percents []int
	for _, p := range regexp.MustCompile(`\d+ conversations, [\d.]+ .?B of [\d.]+ MB \((\d+) %\)`).FindAllStringSubmatch(screen, -1) {
		n, _ := strconv.Atoi(p[1])
		percents = append(percents, n)
	}
	if distinct := slices.Compact(slices.Clone(percents)); len(distinct) < 2 || !slices.IsSorted(percents) || percents[0] >= 100 {
		t.Errorf("it shows %d %%:\n%q", percents, screen)
	}
}

func TestImport_CtrlCStopsItAndTheSameCommandGoesOn(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.serve(nil)
	name := h.export(250)
	person, program := openTerminal(t)
	screen := &coretest.Log{}
	go func() { _, _ = io.Copy(screen, person) }() // ends with the terminal
	p := h.start(func(c *exec.Cmd) { c.Stderr = program }, "import", name)
	some := regexp.MustCompile(`\([1-9]\d* %\)`)
	p.sees(func() bool { return some.MatchString(screen.String()) })
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	counts := regexp.MustCompile(`(\d+) added, 0 updated, (\d+) unchanged, 0 continued here and left alone, 0 deleted here and left out, 0 empty and left out, 0 failed`)
	code, out := p.end(), p.out.String()
	first := counts.FindStringSubmatch(out)
	if code != exitClean || first == nil || first[1] == "250" || first[2] != "0" || !strings.Contains(out, "Stopped before the end: the same command goes on.") {
		t.Fatalf("stopped: %d %s", code, out)
	}
	code, out, errs := h.run("import", name)
	next := counts.FindStringSubmatch(out)
	if code != exitClean || next == nil || next[2] != first[1] || strings.Contains(out, "Stopped") {
		t.Fatalf("again: %d %s%s", code, out, errs)
	}
	if a, _ := strconv.Atoi(first[1]); next[1] != strconv.Itoa(250-a) {
		t.Errorf("%d were added first, and %s then", a, next[1])
	}
}
