package registry_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/quote"
	"gatehouse/core/llm/registry"
)

func models(t *testing.T, c registry.Config) *registry.Models {
	t.Helper()
	m, err := registry.New(c, registry.Options{Clock: core.System{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestTheFirstProviderWithKeyOrAddressAnswersWhereNoModelIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ anthropic, openai, want string }{
		"none":      {"", "", "local/quote"},
		"openai":    {"", "http://127.0.0.1:1/v1", "openai"},
		"anthropic": {"http://127.0.0.1:1", "", "anthropic"},
		"both":      {"http://127.0.0.1:1", "http://127.0.0.1:1/v1", "anthropic"},
	} {
		t.Run(name, func(t *testing.T) {
			m := models(t, registry.Config{Anthropic: registry.Access{BaseURL: c.anthropic}, OpenAI: registry.Access{BaseURL: c.openai}})
			if got := m.Default(); got != c.want {
				t.Errorf("%s answers, want %s", got, c.want)
			}
		})
	}
}

func TestFindRestrictsGuestsToTheirModel(t *testing.T) {
	access := registry.Access{BaseURL: "http://127.0.0.1:1/v1"}
	m := models(t, registry.Config{Model: "openai/a", Fallbacks: []string{"local/quote", "openai/a"}, Guest: "openai/g", Title: "openai/t", OpenAI: access, Elsewhere: "cli/"})
	if want := []string{"openai/a", "local/quote", "openai/g", "openai/t"}; !slices.Equal(m.Names, want) || !slices.Equal(m.Open(false), want) {
		t.Errorf("Names = %q", m.Names)
	}
	if got := m.Open(true); !slices.Equal(got, []string{"openai/g"}) {
		t.Errorf("guests may choose %q", got)
	}
	if _, err := m.Find("openai/a", true); core.KindOf(err) != core.Denied {
		t.Errorf("a guest with another model: %v", err)
	}
	if x, err := m.Find("", true); err != nil || x.About().Name != "openai/g" || !m.OnlyForGuests("openai/g") || m.OnlyForGuests("openai/a") {
		t.Errorf("a guest is answered by %v, %v", x, err)
	}
	if why := m.Missing("openai/x"); !strings.Contains(why, "there is openai/a, local/quote") {
		t.Errorf("Missing = %q", why)
	}
	if why := m.Missing("cli/opus"); why != "" {
		t.Errorf("a model of the other runtime is missing: %s", why)
	}
}

func TestNewRefusesNamesWithoutAProvider(t *testing.T) {
	_, err := registry.New(registry.Config{Model: "cheap"}, registry.Options{})
	if core.KindOf(err) != core.Invalid {
		t.Errorf("New = %v, want Invalid", err)
	}
}

func TestTheWindowOfAModelIsASetting(t *testing.T) {
	access := registry.Access{BaseURL: "http://127.0.0.1:1/v1"}
	m := models(t, registry.Config{Model: "openai/small", Fallbacks: []string{"openai/other", "anthropic/claude-sonnet-4-0"}, OpenAI: access, Anthropic: access,
		Windows: map[string]int{"openai/small": 8192, "anthropic/claude-sonnet-4-0": 100_000}})
	for name, want := range map[string]int{"openai/small": 8192, "openai/other": 0, "anthropic/claude-sonnet-4-0": 100_000} {
		if got := m.Named(name).About().Window; got != want {
			t.Errorf("the window of %s is %d, want %d", name, got, want)
		}
	}
}

func TestModelsOfNamedProvidersAreChosenByTheirNames(t *testing.T) {
	lab := registry.Other{Name: "lab", Kind: "openai", Access: registry.Access{BaseURL: "http://127.0.0.1:1/v1"}, Models: []string{"a", "vendor/b"}}
	m := models(t, registry.Config{Others: []registry.Other{lab, {Name: "proxy", Kind: "anthropic", Access: registry.Access{BaseURL: "http://127.0.0.1:1"}}},
		Fallbacks: []string{"proxy/claude-x"}, Windows: map[string]int{"lab/vendor/b": 9000}})
	if want := []string{"lab/a", "proxy/claude-x", "lab/vendor/b"}; m.Default() != "lab/a" || !slices.Equal(m.Names, want) {
		t.Errorf("%s answers, of %q", m.Default(), m.Names)
	}
	if got := m.Open(true); !slices.Equal(got, []string{"lab/a", "proxy/claude-x"}) || m.Listed("lab/a") || !m.Listed("lab/vendor/b") {
		t.Errorf("guests may choose %q", got)
	}
	if x, err := m.Find("lab/vendor/b", false); err != nil || x.About().Window != 9000 {
		t.Errorf("%v, %v", x, err)
	}
	if _, err := m.Find("lab/other", false); core.KindOf(err) != core.Invalid {
		t.Errorf("a model that no one lists: %v", err)
	}
}

// Members of a council answer only who asks for it, so the built-in model still says that
// none is configured.
func TestTheBuiltInModelSaysThatThereIsNoModelBesideACouncil(t *testing.T) {
	t.Parallel()
	for listed, want := range map[string]bool{"": true, "big": false} {
		other := registry.Other{Name: "one", Kind: "openai", Access: registry.Access{BaseURL: "http://127.0.0.1:9/v1"}}
		if listed != "" {
			other.Models = []string{listed}
		}
		m := models(t, registry.Config{Model: quote.Name, Others: []registry.Other{other}, Council: []string{"one/a", "one/b"}})
		var text strings.Builder
		for d, err := range m.First.Reply(t.Context(), &llm.Request{Messages: []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "text", Text: "Tea?"}}}}}) {
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(d.Text)
		}
		if got := strings.Contains(text.String(), "No language model"); got != want {
			t.Errorf("with %q listed it answers %q", listed, text.String())
		}
	}
}

// What is asked of a council beside its turns, such as a note, its first member answers: it has that one's price.
func TestACouncilIsPricedAsItsFirstMember(t *testing.T) {
	other := registry.Other{Name: "one", Kind: "openai", Access: registry.Access{BaseURL: "http://127.0.0.1:9/v1"}}
	m := models(t, registry.Config{Model: quote.Name, Others: []registry.Other{other}, Council: []string{"one/a", "one/b"}})
	model, err := m.Find("council/high", false)
	if err != nil {
		t.Fatal(err)
	}
	if about := model.About(); about.Name != "council/high" || about.Priced() != "one/a" {
		t.Errorf("%s is priced as %s", about.Name, about.Priced())
	}
}
