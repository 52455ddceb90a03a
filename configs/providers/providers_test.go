package providers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs/providers"
)

const secret = "sk-do-not-show-0123456789"

// file writes text as a providers file, beside a file with a key.
func file(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"key": secret + "\n", "empty": "\n", "providers.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "providers.yaml")
}

func TestAFileNamesProvidersWithKeysModelsAndPrices(t *testing.T) {
	s := providers.Open(file(t, `
providers:
  - name: groq
    kind: openai
    base_url: https://groq.example/v1/
    key_file: key
    models:
      - {name: big, window: 131072, input: 0.5, output: 1.5, cache_read: 0.1}
      - name: vendor/small
  - {name: proxy, kind: anthropic, base_url: "https://proxy.example", search_price: 10}
prices:
  openai/gpt-x: {input: 1, output: 2}
  proxy/claude-x: {input: 0, output: 0}
`))
	if err := s.Fault(); err != nil {
		t.Fatal(err)
	}
	l := s.Now()
	p := l.Named("groq")
	if p == nil || p.Kind != "openai" || p.BaseURL != "https://groq.example/v1" || p.Key.Reveal() != secret || len(p.Models) != 2 {
		t.Fatalf("%+v", p)
	}
	if p.Models[0] != (providers.Model{Name: "big", Window: 131072}) || p.Models[1].Name != "vendor/small" {
		t.Errorf("%+v", p.Models)
	}
	if x := l.Prices["groq/big"]; x.Input != 0.5 || x.Output != 1.5 || x.CacheRead == nil || *x.CacheRead != 0.1 || x.CacheWrite != nil {
		t.Errorf("%+v", x)
	}
	if _, ok := l.Prices["groq/vendor/small"]; ok || len(l.Prices) != 3 || l.Searches["proxy"] != 10 {
		t.Errorf("%+v, %+v", l.Prices, l.Searches)
	}
}

func TestTheExampleIsValidButForItsKeyFiles(t *testing.T) {
	text, err := os.ReadFile("../providers.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := strings.NewReplacer("/run/secrets/groq_key", "key", "proxy_key", "key").Replace(string(text))
	s := providers.Open(file(t, example))
	if err := s.Fault(); err != nil || len(s.Now().Providers) != 3 {
		t.Errorf("%v, %d providers", err, len(s.Now().Providers))
	}
}

func TestFaultsNameLineAndField(t *testing.T) {
	const head = "providers:\n  - name: a\n    kind: openai\n    base_url: http://127.0.0.1:1\n"
	for name, c := range map[string]struct{ text, want string }{
		"unknown field":       {head + "    adress: x\n", ":5: the field adress is not known"},
		"a key in the file":   {head + "    key: " + secret + "\n", ":5: the field key is not known; did you mean key_file?"},
		"unknown at the top":  {"provider: []\n", ":1: the field provider is not known; did you mean provider"},
		"kind":                {"providers:\n  - name: a\n    kind: gemini\n    base_url: http://127.0.0.1:1\n", ":3: kind: anthropic or openai"},
		"no name":             {"providers:\n  - kind: openai\n    base_url: http://127.0.0.1:1\n", ":2: this provider has no name"},
		"bad name":            {"providers:\n  - name: A b\n    kind: openai\n    base_url: http://127.0.0.1:1\n", ":2: name: 1 to 32"},
		"reserved name":       {"providers:\n  - name: openai\n    kind: openai\n    base_url: http://127.0.0.1:1\n", ":2: name: openai is the name of something else"},
		"twice":               {head + strings.TrimPrefix(head, "providers:\n"), ":5: name: a is given twice"},
		"address":             {"providers:\n  - name: a\n    kind: openai\n    base_url: ftp://x\n", ":4: base_url: want an http"},
		"neither":             {"providers:\n  - name: a\n    kind: openai\n", ":2: this provider has neither base_url nor key_file"},
		"key file missing":    {head + "    key_file: absent\n", ":5: key_file: there is no file"},
		"key file empty":      {head + "    key_file: empty\n", ":5: key_file: it cannot be read, is empty"},
		"window":              {head + "    models:\n      - {name: m, window: 12}\n", ":6: window: a number of tokens"},
		"window is no number": {head + "    models:\n      - {name: m, window: large}\n", ":6: window wants a whole number"},
		"half a price":        {head + "    models:\n      - {name: m, input: 1}\n", ":6: a price has both input and output"},
		"negative price":      {head + "    models:\n      - name: m\n        input: -1\n        output: 1\n", ":7: input: USD from 0"},
		"too high a price":    {head + "    models:\n      - name: m\n        input: 1\n        output: 1000001\n", ":8: output: USD from 0"},
		"too many models":     {head + "    models: [" + strings.Repeat("{name: x},", 65) + "]\n", "models: at most 64"},
		"too many providers":  {"providers: [" + strings.Repeat("{name: x},", 33) + "]\n", "providers: at most 32"},
		"no price":            {head + "    models:\n      - name: m\n        input: .nan\n        output: 1\n", ":7: input: USD from 0"},
		"model twice":         {head + "    models:\n      - name: m\n      - name: m\n", ":7: name: this model is given twice"},
		"price of no one":     {head + "prices:\n  b/x: {input: 1, output: 1}\n", "prices: each is named by provider/model"},
		"field twice":         {head + "    kind: openai\n", ":5: this is not YAML"},
		"no YAML":             {"providers: [\n", "this is not YAML"},
		"a list":              {"- name: a\n", ":1: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := providers.Open(file(t, c.text))
			err := s.Fault()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Error("the fault shows a key")
			}
			if len(s.Now().Providers) != 0 {
				t.Error("a faulty file names providers")
			}
		})
	}
}

// A fault is logged when it is another one: the same file has to give the same text.
func TestAFileHasTheSameFaultEachTime(t *testing.T) {
	s := providers.Open(file(t, "prices:\n  openai/x: {input: -1, output: -1, cache_read: -1, cache_write: -1}\n"))
	first := s.Fault().Error()
	for range 20 {
		if _, err := s.Read(); err == nil || err.Error() != first {
			t.Fatalf("%v\nbefore: %s", err, first)
		}
	}
}

func TestAFileThatOthersMayChangeIsRefused(t *testing.T) {
	path := file(t, "")
	if err := os.Chmod(path, 0o622); err != nil {
		t.Fatal(err)
	}
	if err := providers.Open(path).Fault(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}

func TestABadVersionKeepsTheOldOne(t *testing.T) {
	path := file(t, "providers: [{name: a, kind: openai, base_url: 'http://127.0.0.1:1'}]")
	s := providers.Open(path)
	if err := os.WriteFile(path, []byte("providers: [{name: b}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(); err == nil || s.Fault() == nil || s.Now().Named("a") == nil {
		t.Errorf("%v, %v, %v", err, s.Fault(), s.Now())
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := s.Read(); err != nil || s.Fault() != nil || len(l.Providers) != 0 {
		t.Errorf("%v, %v", err, s.Fault())
	}
}

func TestWithoutAFileThereAreNoProviders(t *testing.T) {
	var s *providers.Source
	if s.Path() != "" || s.Fault() != nil || len(s.Now().Providers) != 0 || s.Now().Named("a") != nil || s.Files() != nil {
		t.Error("a nil source has something")
	}
}

// Whatever the file says, it is either refused or within the limits.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "providers: [{name: a, kind: openai, base_url: 'http://x', models: [{name: m, input: 1, output: 2}]}]", "prices: {openai/x: {input: 1, output: 1}}", "a: &a [*a]", "providers: {}", "? [a]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := providers.Open(file(t, text))
		l := s.Now()
		if s.Fault() != nil && len(l.Providers) > 0 {
			t.Error("a faulty file names providers")
		}
		for name, p := range l.Prices {
			if !(p.Input >= 0 && p.Output >= 0) {
				t.Errorf("%s costs %v", name, p)
			}
		}
		for _, p := range l.Providers {
			if p.Name == "" || l.Named(p.Name).Kind == "" || len(p.Models) > 64 {
				t.Errorf("%+v", p)
			}
		}
	})
}
