package providers

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"gatehouse/configs/check"
	"gatehouse/configs/values"
)

// The file as it is written.
type (
	document struct {
		Providers []provider       `yaml:"providers"`
		Prices    map[string]price `yaml:"prices"`
	}
	provider struct {
		Name    string   `yaml:"name"`
		Kind    string   `yaml:"kind"`
		BaseURL string   `yaml:"base_url"`
		KeyFile string   `yaml:"key_file"`
		Search  *float64 `yaml:"search_price"`
		Models  []model  `yaml:"models"`
	}
	model struct {
		Name   string `yaml:"name"`
		Window int    `yaml:"window"`
		Price  price  `yaml:",inline"`
	}
	price struct {
		Input      *float64 `yaml:"input"`
		Output     *float64 `yaml:"output"`
		CacheRead  *float64 `yaml:"cache_read"`
		CacheWrite *float64 `yaml:"cache_write"`
	}
)

// A reader reads one file and notes everything that is wrong. It repeats no
// value of the file but names: a key may be in the wrong place.
type reader struct {
	path   string
	body   ast.Node
	list   *List
	faults []error
}

// read returns the content of the file at path.
func read(path string) (*List, error) {
	text, mode, err := values.ReadBounded(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", path)
	}
	if err != nil {
		return nil, err
	}
	r := &reader{path: path, list: &List{Prices: map[string]Price{}, Searches: map[string]float64{}, files: []string{path}}}
	if err := check.Private(path, mode, false); err != nil {
		r.faults = append(r.faults, fmt.Errorf("%s: %w", path, err))
	}
	r.document(text)
	if len(r.faults) > 0 {
		return nil, faults(r.faults)
	}
	return r.list, nil
}

// faults is everything that is wrong with a file, in one line.
type faults []error

func (f faults) Error() string {
	var list []string
	for _, err := range f {
		list = append(list, err.Error())
	}
	return strings.Join(list, "; ")
}

func (r *reader) document(text []byte) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		r.syntax(err)
		return
	}
	for _, d := range file.Docs {
		if d.Body == nil || d.Body.Type() == ast.NullType {
			continue
		}
		if r.body != nil {
			r.bad(d.Body.GetToken(), "the file has more than one document")
			return
		}
		r.body = d.Body
	}
	if r.body == nil {
		return
	}
	var d document
	if err := yaml.NodeToValue(r.body, &d, yaml.Strict()); err != nil {
		r.syntax(err)
		return
	}
	if len(d.Providers) > maxProviders {
		r.at("$.providers", "providers: at most %d", maxProviders)
		return
	}
	for i := range d.Providers {
		r.provider(fmt.Sprintf("$.providers[%d]", i), &d.Providers[i])
	}
	r.prices(d.Prices)
}

// quoted is what a parser's message may repeat of the file.
var quoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("[\"'`].*[\"'`]") })

// syntax notes where the file is not YAML, or not of this form.
func (r *reader) syntax(err error) {
	var e yaml.Error
	if !errors.As(err, &e) {
		r.bad(nil, "this is not YAML of the form that is expected")
		return
	}
	at := e.GetToken()
	var kind *yaml.TypeError
	var unknown *yaml.UnknownFieldError
	switch {
	case errors.As(err, &unknown) && at != nil:
		near := check.Nearest(at.Value, fieldNames())
		if strings.HasSuffix(at.Value, "key") {
			near = "key_file"
		}
		r.bad(at, "the field "+name(at.Value)+" is not known; did you mean "+near+"?")
	case errors.As(err, &kind):
		r.bad(at, keyBefore(at)+" wants "+wanted(kind.DstType))
	default:
		r.bad(at, "this is not YAML: "+quoted().ReplaceAllString(e.GetMessage(), "…"))
	}
}

// plain is what a field's name looks like: anything else is not repeated.
var plain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z_]{0,23}$`) })

func name(s string) string {
	if !plain().MatchString(s) {
		return "here"
	}
	return s
}

// keyBefore returns the field whose value begins at or before a token.
func keyBefore(at *token.Token) string {
	for t := at; t != nil; t = t.Prev {
		if t.Type == token.MappingValueType && t.Prev != nil {
			return name(t.Prev.Value)
		}
	}
	return "the file"
}

func wanted(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return "another kind of value"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.String:
		return "a text"
	}
	return "fields"
}

func fieldNames() []string {
	return []string{"providers", "prices", "name", "kind", "base_url", "key_file", "search_price", "models", "window", "input", "output", "cache_read", "cache_write"}
}

func (r *reader) bad(at *token.Token, fault string) {
	where := r.path
	if at != nil && at.Position != nil {
		where = fmt.Sprintf("%s:%d", r.path, at.Position.Line)
	}
	r.faults = append(r.faults, fmt.Errorf("%s: %s", where, fault))
}

// token returns the token at a path of the file, or of the nearest one above it.
func (r *reader) token(path string) *token.Token {
	for path != "" {
		if p, err := yaml.PathString(path); err == nil {
			if n, err := p.FilterNode(r.body); err == nil && n != nil {
				return firstOf(n)
			}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return nil
}

// firstOf returns the first token of a node; a mapping's own is behind its first key.
func firstOf(n ast.Node) *token.Token {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}

func (r *reader) at(path, fault string, args ...any) {
	r.bad(r.token(path), fmt.Sprintf(fault, args...))
}

var providerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,31}$`) })

// reserved are names that mean something else in front of a model.
var reserved = []string{"anthropic", "openai", "local", "claudecli", "council"}

func (r *reader) provider(path string, d *provider) {
	p := Provider{Name: d.Name, Kind: d.Kind, BaseURL: strings.TrimRight(d.BaseURL, "/")}
	if t := r.token(path); t != nil {
		p.Where = fmt.Sprintf("%s:%d", r.path, t.Position.Line)
	}
	switch {
	case d.Name == "":
		r.at(path, "this provider has no name")
	case !providerName().MatchString(d.Name):
		r.at(path+".name", "name: 1 to 32 small letters, digits, -, _ and ., beginning with a letter")
	case slices.Contains(reserved, d.Name):
		r.at(path+".name", "name: %s is the name of something else; choose another", d.Name)
	case r.list.Named(d.Name) != nil:
		r.at(path+".name", "name: %s is given twice", d.Name)
	}
	if d.Kind != Anthropic && d.Kind != OpenAI {
		r.at(path+".kind", "kind: anthropic or openai, by the API that the server has")
	}
	if err := check.Base(p.BaseURL); err != nil {
		r.at(path+".base_url", "base_url: %s", err)
	}
	if p.BaseURL == "" && d.KeyFile == "" {
		r.at(path, "this provider has neither base_url nor key_file")
	}
	p.Key = r.key(path+".key_file", d.KeyFile)
	if len(d.Models) > maxModels {
		r.at(path+".models", "models: at most %d", maxModels)
		return
	}
	for i := range d.Models {
		r.model(fmt.Sprintf("%s.models[%d]", path, i), &p, &d.Models[i])
	}
	if d.Search != nil {
		r.amount(path, "search_price", d.Search)
		r.list.Searches[p.Name] = *d.Search
	}
	r.list.Providers = append(r.list.Providers, p)
}

// key reads the file with a key; relative names are next to the file itself.
func (r *reader) key(path, file string) (key values.Secret) {
	if file == "" {
		return key
	}
	if !filepath.IsAbs(file) {
		if rest, ok := strings.CutPrefix(file, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				r.at(path, "key_file: the home directory is not known: give the whole path")
				return key
			}
			file = filepath.Join(home, rest)
		} else {
			file = filepath.Join(filepath.Dir(r.path), file)
		}
	}
	r.list.files = append(r.list.files, file)
	key, err := values.ReadSecret(file)
	switch {
	case err != nil && !exists(file):
		r.at(path, "key_file: there is no file that can be read")
	case err != nil:
		r.at(path, "key_file: it cannot be read, is empty or is too long")
	default:
		if err := check.Key(key); err != nil {
			r.at(path, "key_file: the key %s", err)
		}
	}
	return key
}

func (r *reader) model(path string, p *Provider, d *model) {
	switch {
	case d.Name == "" || len(d.Name) > 200 || strings.ContainsFunc(d.Name, func(c rune) bool { return c <= ' ' }):
		r.at(path, "name: a model needs a name without blanks")
		return
	case slices.ContainsFunc(p.Models, func(m Model) bool { return m.Name == d.Name }):
		r.at(path, "name: this model is given twice")
		return
	case d.Window != 0 && (d.Window < minWindow || d.Window > maxWindow):
		r.at(path+".window", "window: a number of tokens from %d to %d", minWindow, maxWindow)
	}
	p.Models = append(p.Models, Model{Name: d.Name, Window: d.Window})
	if d.Price != (price{}) {
		r.price(path, p.Name+"/"+d.Name, &d.Price)
	}
}

// prices reads the prices of models by their whole names.
func (r *reader) prices(list map[string]price) {
	if len(list) > maxPrices {
		r.at("$.prices", "prices: at most %d models", maxPrices)
		return
	}
	for _, full := range slices.Sorted(maps.Keys(list)) {
		p := list[full]
		path := "$.prices.'" + full + "'"
		kind, rest, _ := strings.Cut(full, "/")
		if rest == "" || kind != Anthropic && kind != OpenAI && r.list.Named(kind) == nil {
			r.at("$.prices", "prices: each is named by provider/model, with a provider that exists")
			continue
		}
		r.price(path, full, &p)
	}
}

func (r *reader) price(path, full string, d *price) {
	if d.Input == nil || d.Output == nil {
		r.at(path, "a price has both input and output, in USD per million tokens")
		return
	}
	for _, v := range []struct {
		field string
		of    *float64
	}{{"input", d.Input}, {"output", d.Output}, {"cache_read", d.CacheRead}, {"cache_write", d.CacheWrite}} {
		if v.of != nil {
			r.amount(path, v.field, v.of)
		}
	}
	r.list.Prices[full] = Price{Input: *d.Input, Output: *d.Output, CacheRead: d.CacheRead, CacheWrite: d.CacheWrite}
}

func (r *reader) amount(path, field string, v *float64) {
	if !(*v >= 0 && *v <= maxPrice) || math.IsNaN(*v) {
		r.at(path+"."+field, "%s: USD from 0 to %v", field, maxPrice)
	}
}
