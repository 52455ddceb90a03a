package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/configs/values"
)

// Bounds of the windows of models.
const (
	maxWindows = 64
	minWindow  = 1_000
	maxWindow  = 100_000_000
)

// Windows accepts windows in tokens, by names of models.
func Windows(windows values.Sizes) error {
	if len(windows) > maxWindows {
		return fmt.Errorf("at most %d models", maxWindows)
	}
	for _, name := range slices.Sorted(maps.Keys(windows)) {
		provider, model, _ := strings.Cut(name, "/")
		if provider != "anthropic" && provider != "openai" || model == "" {
			return fmt.Errorf("%q is not anthropic/NAME or openai/NAME", name)
		}
		if n := windows[name]; n < minWindow || n > maxWindow {
			return fmt.Errorf("the window of %s is not a number of tokens from %d to %d", name, minWindow, maxWindow)
		}
	}
	return nil
}

// Local accepts the name of a model of ours.
func Local(model string) error {
	kind, delay, timed := strings.Cut(model, ":")
	d, err := time.ParseDuration(delay)
	if kind != "local/quote" || timed && (err != nil || d < 0 || d > time.Minute) {
		return fmt.Errorf("%q is not local/quote, or local/quote:30ms with a delay for each word", model)
	}
	return nil
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// Variable accepts the name of a variable that is no setting of ours, which begin with
// prefix: no other program needs them.
func Variable(name, prefix string) error {
	switch {
	case !variable().MatchString(name):
		return fmt.Errorf("%q is not the name of a variable", name)
	case strings.HasPrefix(name, prefix+"_"):
		return fmt.Errorf("%q is a setting of the gateway, which no other program gets", name)
	}
	return nil
}
