package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func providersFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "providers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loseProviders empties the providers file of c, and reads it again.
func loseProviders(t *testing.T, c *Config) {
	t.Helper()
	if err := os.WriteFile(c.ProvidersFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	next, err := c.Providers().Read()
	if err != nil {
		t.Fatal(err)
	}
	c.Providers().Use(next)
}

const oneProvider = "providers: [{name: lab, kind: openai, base_url: 'http://127.0.0.1:1/v1', models: [{name: m}]}]"

func TestModelSettingsNameModelsOfTheProvidersFile(t *testing.T) {
	path := providersFile(t, oneProvider)
	c := load(t, "GATEHOUSE_PROVIDERS_FILE="+path, "GATEHOUSE_MODEL=lab/any/model", "GATEHOUSE_GUEST_MODEL=lab/m")
	if !c.HasProvider() || c.Providers().Now().Named("lab") == nil {
		t.Error("the provider is not read")
	}
	for setting, want := range map[string]string{"GATEHOUSE_MODEL=shop/m": "the providers are anthropic, openai, local, lab", "GATEHOUSE_TITLE_MODEL=lab/": "names no model"} {
		if p := problems(t, "GATEHOUSE_PROVIDERS_FILE="+path, setting); len(p) != 1 || !strings.Contains(p.Error(), want) {
			t.Errorf("%s: %v", setting, p)
		}
	}
}

func TestWindowsAndPricesAreAcceptedForModelsOfEveryProvider(t *testing.T) {
	path := "GATEHOUSE_PROVIDERS_FILE=" + providersFile(t, oneProvider)
	c := load(t, path, "GATEHOUSE_MODEL_WINDOWS=lab/other=8192,openai/x=9000", "GATEHOUSE_MODEL_PRICES=lab/other=1:2,anthropic/x=3:4")
	if c.ModelWindows["lab/other"] != 8192 || c.ModelPrices["lab/other"].Output != 2 {
		t.Errorf("%v, %v", c.ModelWindows, c.ModelPrices)
	}
	for _, setting := range []string{"GATEHOUSE_MODEL_WINDOWS=shop/m=8192", "GATEHOUSE_MODEL_PRICES=shop/m=1:2"} {
		if p := problems(t, path, setting); len(p) != 1 || !strings.Contains(p.Error(), "the providers are anthropic, openai, local, lab; others are named in GATEHOUSE_PROVIDERS_FILE") {
			t.Errorf("%s: %v", setting, p)
		}
	}
	// The file loses a provider that such a setting names: the next start would be refused.
	loseProviders(t, c)
	if err := c.CheckModels(); err == nil || !strings.Contains(err.Error(), "GATEHOUSE_MODEL_WINDOWS") {
		t.Errorf("%v", err)
	}
}

func TestAFaultyProvidersFileIsOneProblemWithItsLine(t *testing.T) {
	p := problems(t, "GATEHOUSE_PROVIDERS_FILE="+providersFile(t, "providers:\n  - name: lab\n    sort: openai\n"), "GATEHOUSE_MODEL=lab/m")
	if len(p) != 1 || p[0].Name != "GATEHOUSE_PROVIDERS_FILE" || !strings.Contains(p[0].Fault, "providers.yaml:3: the field sort is not known") {
		t.Errorf("%v", p)
	}
	if p := problems(t, "GATEHOUSE_PROVIDERS_FILE=/nonexistent/providers.yaml"); len(p) != 1 || !strings.Contains(p.Error(), "there is no file") {
		t.Errorf("%v", p)
	}
}

func TestCheckModelsFindsASettingWhoseProviderIsGone(t *testing.T) {
	c := load(t, "GATEHOUSE_PROVIDERS_FILE="+providersFile(t, oneProvider), "GATEHOUSE_MODEL=lab/m")
	if err := c.CheckModels(); err != nil {
		t.Error(err)
	}
	loseProviders(t, c)
	if err := c.CheckModels(); err == nil || !strings.Contains(err.Error(), "GATEHOUSE_MODEL") {
		t.Errorf("%v", err)
	}
}
