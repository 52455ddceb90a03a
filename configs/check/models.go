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

// Windows accepts windows in tokens, by names of models that named accepts.
func Windows(windows values.Sizes, named func(model string) error) error {
	if len(windows) > maxWindows {
		return fmt.Errorf("at most %d models", maxWindows)
	}
	for _, name := range slices.Sorted(maps.Keys(windows)) {
		if err := named(name); err != nil {
			return err
		}
		if n := windows[name]; n < minWindow || n > maxWindow {
			return fmt.Errorf("the window of %s is not a number of tokens from %d to %d", name, minWindow, maxWindow)
		}
	}
	return nil
}

// Provider accepts the name of a model of one of the providers. More are named in the
// setting more.
func Provider(model string, providers []string, more string) error {
	provider, name, _ := strings.Cut(model, "/")
	switch {
	case !slices.Contains(providers, provider):
		return fmt.Errorf("%q: the providers are %s; others are named in %s", model, strings.Join(providers, ", "), more)
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' }):
		return fmt.Errorf("%q names no model", model)
	}
	return nil
}

// Local accepts the name of a model of the gateway itself.
func Local(model string) error {
	kind, delay, timed := strings.Cut(model, ":")
	d, err := time.ParseDuration(delay)
	if kind != "local/quote" || timed && (err != nil || d < 0 || d > time.Minute) {
		return fmt.Errorf("%q is not local/quote, or local/quote:30ms with a delay for each word", model)
	}
	return nil
}

// Bounds of a council.
const minMembers, maxMembers = 2, 9

// Council splits the members of a council from their judge, which may be "".
func Council(list values.List) (members []string, judge string, err error) {
	for _, name := range list {
		if name == "" {
			continue
		}
		if j, ok := strings.CutPrefix(name, "judge="); ok {
			if judge != "" || j == "" {
				return nil, "", fmt.Errorf("name one judge, as judge=MODEL")
			}
			judge, name = j, j
		} else if slices.Contains(members, name) {
			return nil, "", fmt.Errorf("%s is a member twice", name)
		} else {
			members = append(members, name)
		}
		if provider, _, _ := strings.Cut(name, "/"); provider == "local" || provider == "council" {
			return nil, "", fmt.Errorf("%s cannot be a member: members are models of providers", name)
		}
	}
	if n := len(members); n > 0 && n < minMembers || n > maxMembers || n == 0 && judge != "" {
		return nil, "", fmt.Errorf("name %d to %d members, and perhaps a judge", minMembers, maxMembers)
	}
	return members, judge, nil
}

// Level accepts the name of a council's level where there is a council.
func Level(model string, council bool) error {
	if !slices.Contains([]string{"council", "council/fast", "council/balanced", "council/high", "council/maximum"}, model) {
		return fmt.Errorf("%q is not council, or council/fast, /balanced, /high or /maximum", model)
	}
	if !council {
		return fmt.Errorf("%s needs the setting COUNCIL", model)
	}
	return nil
}

// Dollars accepts no budget, or one in dollars.
func Dollars(b values.Budget) error {
	if b.Tokens > 0 {
		return fmt.Errorf("give it in dollars, such as $0.50")
	}
	return nil
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// Variable accepts the name of a variable that is no setting of the gateway: settings
// begin with prefix, and no other program needs them.
func Variable(name, prefix string) error {
	switch {
	case !variable().MatchString(name):
		return fmt.Errorf("%q is not the name of a variable", name)
	case strings.HasPrefix(name, prefix+"_"):
		return fmt.Errorf("%q is a setting of the gateway, which no other program gets", name)
	}
	return nil
}
