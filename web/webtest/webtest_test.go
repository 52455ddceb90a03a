package webtest

import (
	"fmt"
	"runtime"
	"testing"
)

// A verdict is how a test without a browser ended.
type verdict struct {
	testing.TB
	said string
}

func (v *verdict) Helper() {}

func (v *verdict) Fatalf(format string, args ...any) {
	v.said = "failed: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (v *verdict) Skipf(format string, args ...any) {
	v.said = "skipped: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestAMissingBrowserIsAFailureInCIAndASkipElsewhere(t *testing.T) {
	t.Setenv("GATEHOUSE_TEST_CHROMIUM", "/no/such/browser")
	for ci, want := range map[string]string{
		"true": "failed: no browser, and CI must not go without: stat /no/such/browser: no such file or directory",
		"":     "skipped: no browser at /no/such/browser: set GATEHOUSE_TEST_CHROMIUM, or install Debian's chromium",
	} {
		t.Setenv("CI", ci)
		v := &verdict{TB: t}
		done := make(chan struct{})
		go func() { defer close(done); New(v) }()
		<-done
		if v.said != want {
			t.Errorf("CI=%q: %q, want %q", ci, v.said, want)
		}
	}
}
