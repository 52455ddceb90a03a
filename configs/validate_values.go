package configs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkVariable refuses our own settings: no other program needs them.
func checkVariable(name string) error {
	switch {
	case !variable.MatchString(name):
		return fmt.Errorf("%q is not the name of a variable", name)
	case strings.HasPrefix(name, Prefix+"_"):
		return fmt.Errorf("%q is a setting of the gateway, which no other program gets", name)
	}
	return nil
}

// maxFallbacks bounds MODEL_FALLBACKS.
const maxFallbacks = 8

func (c *Config) checkFallbacks() error {
	if len(c.ModelFallbacks) > maxFallbacks {
		return fmt.Errorf("at most %d models", maxFallbacks)
	}
	return each(c.ModelFallbacks, c.checkModel)
}

// Bounds of MODEL_WINDOWS.
const (
	maxWindows = 64
	minWindow  = 1_000
	maxWindow  = 100_000_000
)

func (c *Config) checkWindows() error {
	if len(c.ModelWindows) > maxWindows {
		return fmt.Errorf("at most %d models", maxWindows)
	}
	for _, name := range slices.Sorted(maps.Keys(c.ModelWindows)) {
		provider, model, _ := strings.Cut(name, "/")
		if provider != "anthropic" && provider != "openai" || model == "" {
			return fmt.Errorf("%q is not anthropic/NAME or openai/NAME", name)
		}
		if n := c.ModelWindows[name]; n < minWindow || n > maxWindow {
			return fmt.Errorf("the window of %s is not a number of tokens from %d to %d", name, minWindow, maxWindow)
		}
	}
	return nil
}

func (c *Config) checkModel(model string) error {
	provider, name, _ := strings.Cut(model, "/")
	switch provider {
	case "local":
		kind, delay, timed := strings.Cut(name, ":")
		d, err := time.ParseDuration(delay)
		if kind != "quote" || timed && (err != nil || d < 0 || d > time.Minute) {
			return fmt.Errorf("%q is not local/quote, or local/quote:30ms with a delay for each word", model)
		}
		return nil
	case "anthropic", "openai":
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' }) {
			return fmt.Errorf("%q names no model", model)
		}
		key, base := c.AnthropicAPIKey, c.AnthropicBaseURL
		if provider == "openai" {
			key, base = c.OpenaiAPIKey, c.OpenaiBaseURL
		}
		if name = Prefix + "_" + strings.ToUpper(provider); !key.IsSet() && base == "" {
			return fmt.Errorf("%s needs %s_API_KEY or %s_BASE_URL", model, name, name)
		}
		return nil
	}
	return fmt.Errorf("%q: this version knows the providers anthropic, openai and local", model)
}
