package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/llm/anthropictest"
	"gatehouse/core/llm/llmtest"
)

// A providersFile is the file of a world's providers, in a directory of its own.
type providersFile struct {
	t    *testing.T
	path string
}

func newProvidersFile(t *testing.T) *providersFile {
	f := &providersFile{t, filepath.Join(t.TempDir(), "providers.yaml")}
	f.write("key", modelKey)
	return f
}

func (f *providersFile) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(filepath.Dir(f.path), name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		f.t.Fatal(err)
	}
}

// One gateway, two servers with OpenAI's API and one with Anthropic's: each model
// is asked at its own, and a budget in dollars accepts them for their prices.
func TestModelsOfNamedProvidersAnswerWithinABudgetInDollars(t *testing.T) {
	t.Parallel()
	one := llmtest.New(t, llmtest.Options{Key: modelKey, Models: []string{"big"}, Default: llmtest.Reply{Text: []string{"I am one."}}})
	two := llmtest.New(t, llmtest.Options{Models: []string{"vendor/small"}, Default: llmtest.Reply{Text: []string{"I am two."}}})
	three := anthropictest.New(t, anthropictest.Options{Key: modelKey, Models: []string{"claude-x"}, Default: anthropictest.Reply{Text: []string{"I am three."}}})
	f := newProvidersFile(t)
	f.write("providers.yaml", `
providers:
  - {name: one, kind: openai, base_url: "`+one.URL()+`", key_file: key, models: [{name: big, input: 1000000, output: 0}]}
  - {name: two, kind: openai, base_url: "`+two.URL()+`", models: [{name: vendor/small}]}
  - {name: three, kind: anthropic, base_url: "`+three.URL()+`", key_file: key, models: [{name: claude-x, input: 1, output: 1}]}
`)
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.ProvidersFile, c.Activity = "one/big", f.path, false
		c.BudgetDay = values.Budget{MicroUSD: 1e15}
	})
	boss := w.boss()
	for _, c := range []struct{ model, want string }{{"one/big", "I am one."}, {"three/claude-x", "I am three."}} {
		w.replies(boss, "/model "+c.model)
		if got := w.replies(boss, "hello"); got.Text != c.want {
			t.Errorf("%s answered %q", c.model, got.Text)
		}
	}
	if n := w.count(`SELECT count(*) FROM usage WHERE model = 'one/big' AND input > 0 AND micro_usd = 1000000 * input`); n == 0 {
		t.Error("the call does not cost what the file says")
	}
	w.replies(boss, "/model two/vendor/small")
	if got := w.replies(boss, "hello"); !strings.Contains(got.Text, "price") || two.Total() != 0 {
		t.Errorf("a model without a price was asked %d times under a budget in dollars: %q", two.Total(), got.Text)
	}
	if page := w.browser().page("/admin/models"); !strings.Contains(page, "three/claude-x") || !strings.Contains(page, "can be chosen") {
		t.Error("the panel does not list the providers' models")
	}
}

// Guests do not get models that are only listed.
func TestGuestsDoNotChooseModelsOfTheList(t *testing.T) {
	t.Parallel()
	f := newProvidersFile(t)
	w, model := newModelWorld(t, func(c *configs.Config) { c.ProvidersFile = f.path; f.write("providers.yaml", "") })
	other := llmtest.New(t, llmtest.Options{})
	f.write("providers.yaml", `providers: [{name: dear, kind: openai, base_url: "`+other.URL()+`", models: [{name: fake-1}]}]`)
	w.until("the file is read", func() bool { return w.app.models.Now().Named("dear/fake-1") != nil })
	ada := w.guest("Ada")
	w.replies(ada, "/model dear/fake-1")
	before := model.Total()
	w.replies(ada, "hello")
	if other.Total() != 0 || model.Total() == before {
		t.Errorf("the listed model was asked %d times for a guest", other.Total())
	}
	if code, body := w.chatText(w.keyOf(ada, core.Sandboxed, "chat"), "/v1/models"); code != 200 || strings.Contains(body, "dear/fake-1") || !strings.Contains(body, fakeModel) {
		t.Errorf("a guest's program is offered %d %s", code, body)
	}
}

// A file with a mistake, and one that lacks what a setting needs, change nothing
// and say so; the next good one is used at the next message.
func TestTheFileOfProvidersIsReadAgainAndABadVersionKeepsTheOld(t *testing.T) {
	t.Parallel()
	first := llmtest.New(t, llmtest.Options{Models: []string{"m"}, Default: llmtest.Reply{Text: []string{"From the first."}}})
	second := llmtest.New(t, llmtest.Options{Key: modelKey, Models: []string{"m"}, Default: llmtest.Reply{Text: []string{"From the second."}}})
	f := newProvidersFile(t)
	f.write("providers.yaml", `providers: [{name: lab, kind: openai, base_url: "`+first.URL()+`"}]`)
	w := newWorld(t, func(c *configs.Config) { c.Model, c.ProvidersFile, c.Activity = "lab/m", f.path, false })
	boss := w.boss()
	answers := func(want string) {
		t.Helper()
		if got := w.replies(boss, "hello"); got.Text != want {
			t.Errorf("answered %q, want %q", got.Text, want)
		}
	}
	answers("From the first.")
	page := func(want string) {
		t.Helper()
		b := w.browser()
		w.until("the panel says "+want, func() bool { return strings.Contains(b.page("/admin/models"), want) })
		answers("From the first.")
	}
	f.write("providers.yaml", "providers:\n  - name: lab\n    kind: openai\n    adress: x\n")
	page("providers.yaml:4: the field adress is not known")
	f.write("providers.yaml", `providers: [{name: other, kind: openai, base_url: "`+second.URL()+`"}]`)
	page("GATEHOUSE_MODEL: &#34;lab/m&#34;: the providers are")
	f.write("providers.yaml", `providers: [{name: lab, kind: openai, base_url: "`+second.URL()+`", key_file: key}]`)
	w.until("the new server answers", func() bool { return w.replies(boss, "hello").Text == "From the second." })
	if body := w.browser().page("/admin/models"); strings.Contains(body, "cannot be used") {
		t.Error("the panel still shows the fault")
	}
	if strings.Contains(w.log.String(), modelKey) {
		t.Error("the key is in the log")
	}
}

func TestAModelOfANamedProviderIsSetInThePanelAfterATestCall(t *testing.T) {
	t.Parallel()
	other := llmtest.New(t, llmtest.Options{Models: []string{"fake-1"}})
	f := newProvidersFile(t)
	f.write("providers.yaml", `providers: [{name: lab, kind: openai, base_url: "`+other.URL()+`"}]`)
	w, _ := newModelWorld(t, func(c *configs.Config) { c.ProvidersFile = f.path })
	b := w.browser()
	if body := b.set("models", url.Values{"MODEL": {"lab/fake-1"}}); !strings.Contains(body, "1 setting is changed") {
		t.Error(body)
	}
	if body := b.set("models", url.Values{"MODEL": {"shop/fake-1"}}); !strings.Contains(body, "the providers are anthropic, openai, local, lab") {
		t.Error(body)
	}
	if other.Total() != 1 || w.app.models.Default() != "lab/fake-1" {
		t.Errorf("%d test calls, %s answers", other.Total(), w.app.models.Default())
	}
}
