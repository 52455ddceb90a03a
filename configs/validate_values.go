package configs

import (
	"fmt"
	"strings"

	"gatehouse/configs/check"
	"gatehouse/configs/providers"
)

// maxFallbacks bounds MODEL_FALLBACKS.
const maxFallbacks = 8

func (c *Config) checkFallbacks() error {
	if len(c.ModelFallbacks) > maxFallbacks {
		return fmt.Errorf("at most %d models", maxFallbacks)
	}
	return each(c.ModelFallbacks, c.checkModel)
}

func (c *Config) checkModel(model string) error {
	provider, name, _ := strings.Cut(model, "/")
	switch provider {
	case "council":
		return check.Level(model, len(c.Council) > 0)
	case "local":
		return check.Local(model)
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
	return c.checkNamed(model)
}

func (c *Config) checkCouncil() error {
	members, judge, err := check.Council(c.Council)
	if err != nil {
		return err
	}
	return each(append(members, judge), c.checkModel)
}

// CouncilMembers returns the members of COUNCIL, and its judge or "".
func (c *Config) CouncilMembers() (members []string, judge string) {
	members, judge, _ = check.Council(c.Council) // it was checked
	return members, judge
}

// openProviders reads PROVIDERS_FILE. What is wrong with it is found by its check.
func (c *Config) openProviders() {
	if c.providers = nil; c.ProvidersFile != "" {
		c.providers = providers.Open(c.ProvidersFile)
	}
}

// checkNamed accepts a model of a provider with settings of its own, or in PROVIDERS_FILE.
func (c *Config) checkNamed(model string) error {
	list := c.providers.Now()
	if c.providers.Fault() != nil && len(list.Providers) == 0 { // which is reported
		return nil
	}
	return check.Provider(model, append([]string{"anthropic", "openai", "local"}, list.Names()...), Prefix+"_PROVIDERS_FILE")
}

// CheckModels returns what is wrong with the settings that name models; nil if
// the providers that are in use have them all.
func (c *Config) CheckModels() error {
	checks := c.checks()
	for _, name := range []string{"MODEL", "MODEL_FALLBACKS", "MODEL_WINDOWS", "MODEL_PRICES", "GUEST_MODEL", "TITLE_MODEL", "COUNCIL"} {
		if err := checks[name](); err != nil {
			return fmt.Errorf("%s_%s: %w", Prefix, name, err)
		}
	}
	return nil
}
