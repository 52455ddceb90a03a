package webtest

import (
	"os"
	"testing"
)

// An Axe is the source of axe-core.
type Axe string

// NewAxe reads the file that GATEHOUSE_TEST_AXE names; without it the test is skipped.
func NewAxe(t testing.TB) Axe {
	t.Helper()
	file := os.Getenv("GATEHOUSE_TEST_AXE")
	if file == "" {
		t.Skip("GATEHOUSE_TEST_AXE names no axe.min.js: make test-axe fetches it")
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return Axe(axe)
}

// A Violation is what axe-core finds, with the first place that it is found at.
type Violation struct{ Impact, Rule, Help, At string }

// Violations returns what axe-core finds on the page as it is, and how many rules had
// something to check.
func (b *Tab) Violations(axe Axe) (found []Violation, passed int) {
	b.t.Helper()
	Value[bool](b, string(axe)+"\n;window.found = undefined; Boolean(window.axe)")
	b.Eventually(`(window.found === undefined && (window.found = null, axe.run(document, {resultTypes: ["violations"]}).then((r) => { window.found = r.violations; window.passed = r.passes.length; })), window.found !== null && window.found !== undefined)`)
	found = Value[[]Violation](b, `window.found.map((v) => ({Impact: v.impact ?? "", Rule: v.id, Help: v.help, At: v.nodes[0].html.slice(0, 160)}))`)
	return found, Value[int](b, `window.passed`)
}
