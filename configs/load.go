package configs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kelseyhightower/envconfig"

	"gatehouse/configs/check"
	"gatehouse/configs/values"
)

// Load reads, checks and returns the configuration of this process. It takes
// no environment as an argument because envconfig reads the process's own and
// no other; a program under test is given its settings through t.Setenv or
// as a child. An error is a Problems: everything that is wrong, at once.
// A variable that is set to nothing counts as not set. BOTS_FILE is not
// opened: LoadAll and ReadBots do.
func Load() (*Config, error) { return read(false) }

// LoadAll is Load, and reads BOTS_FILE too.
func LoadAll() (*Config, error) { return read(true) }

func read(bots bool) (*Config, error) {
	c := &Config{source: map[string]string{}, files: map[string]fromFile{}}
	problems := unknown(os.Environ())
	for _, f := range fields() {
		if p := f.load(c); p != nil {
			problems = append(problems, *p)
		}
	}
	c.settle()
	problems = append(problems, c.faults(problems.Named)...)
	if bots && !problems.Named(Prefix+"_VAULT_PATH") && !problems.Named(Prefix+"_BOTS_FILE") {
		problems = append(problems, c.loadBots()...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}

// Default returns the configuration of an empty environment. It reads none.
func Default() *Config {
	c := &Config{source: map[string]string{}, files: map[string]fromFile{}}
	for _, f := range fields() {
		_ = f.process(nowhere, c) // a test decodes every default
	}
	c.settle()
	return c
}

// nowhere is a prefix that no environment can hold ("=" ends a name), so that
// envconfig finds the defaults and nothing else.
const nowhere = Prefix + "="

// A field is one setting: a field of Config and what its tags say.
type field struct {
	reflect.StructField
	Name    string // as in the environment
	about   string
	example string
}

// fields lists the settings in the order of Config, named by envconfig.
var fields = sync.OnceValue(func() []field {
	var names strings.Builder
	if err := envconfig.Usagef(Prefix, &Config{}, &names, "{{range .}}{{usage_key .}} {{end}}"); err != nil {
		panic(err) // Config is a struct and the template is constant
	}
	var list []field
	t := reflect.TypeFor[Config]()
	for i, name := range strings.Fields(names.String()) {
		f := t.Field(i) // unexported fields are last
		list = append(list, field{f, name, f.Tag.Get("desc"), f.Tag.Get("example")})
	}
	return list
})

func (f field) short() string { return strings.TrimPrefix(f.Name, Prefix+"_") }

func (f field) in(c *Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(f.Index) }

func (f field) secret() bool { return f.Type == reflect.TypeFor[values.Secret]() }

// secretFile returns an example of a file that holds the secret.
func (f field) secretFile() string { return "/run/secrets/" + strings.ToLower(f.short()) }

// bare returns the name under which the setting is read without prefix, or "".
func (f field) bare() string { return f.Tag.Get("envconfig") }

// process has envconfig fill this one field of c. envconfig stops at the
// first fault; one field at a time finds them all.
func (f field) process(prefix string, c *Config) error {
	one := f.StructField
	one.Index, one.Offset = nil, 0
	if prefix == nowhere {
		one.Tag = reflect.StructTag(strings.Replace(string(one.Tag), "envconfig:", "unread:", 1))
	}
	p := reflect.New(reflect.StructOf([]reflect.StructField{one}))
	if err := envconfig.Process(prefix, p.Interface()); err != nil {
		return err
	}
	f.in(c).Set(p.Elem().Field(0))
	return nil
}

// load fills f from the environment, from the file that NAME_FILE names, or
// with its default, and notes where the value came from.
func (f field) load(c *Config) *Problem {
	prefix, name, file := Prefix, f.Name, ""
	if f.bare() != "" && os.Getenv(name) == "" {
		prefix, name = "", f.bare()
	}
	value := os.Getenv(name)
	if f.secret() {
		file = os.Getenv(f.Name + "_FILE")
	}
	switch {
	case value != "" && file != "":
		return f.problem("is set, and so is " + f.Name + "_FILE: set only one of them")
	case file != "":
		s, err := values.ReadSecret(file)
		if err != nil {
			return &Problem{Name: f.Name + "_FILE", Fault: err.Error(), Example: f.Name + "_FILE=" + f.secretFile()}
		}
		f.in(c).Set(reflect.ValueOf(s))
		c.source[f.short()], c.files[f.short()] = SourceFile, fromFile{absolute(file), s}
		return nil
	case value == "":
		_ = f.process(nowhere, c)
		return nil
	}
	if err := f.process(prefix, c); err != nil {
		_ = f.process(nowhere, c) // so that the checks that follow meet a sound value
		return &Problem{Name: name, Fault: f.fault(value, err), Example: name + "=" + f.example}
	}
	c.source[f.short()] = SourceEnvironment
	return nil
}

func (f field) problem(fault string) *Problem {
	return &Problem{Name: f.Name, Fault: fault, Example: f.Name + "=" + f.example}
}

// fault returns the reason why value could not be read. A Secret accepts any value,
// so value is no secret.
func (f field) fault(value string, err error) string {
	var p *envconfig.ParseError
	switch {
	case f.Type == reflect.TypeFor[int]():
		return fmt.Sprintf("%q is not a whole number", value)
	case f.Type == reflect.TypeFor[time.Duration]():
		return fmt.Sprintf("%q is not a duration such as 90s, 5m or 1h", value)
	case errors.As(err, &p):
		return p.Err.Error()
	}
	return err.Error()
}

// testPrefix marks variables that belong to the tests.
const testPrefix = Prefix + "_TEST_"

// known returns an example for each name of a setting.
func known() map[string]string {
	examples := map[string]string{}
	for _, f := range fields() {
		examples[f.Name] = f.example
		if f.secret() {
			examples[f.Name+"_FILE"] = f.secretFile()
		}
	}
	return examples
}

// unknown finds the names under our prefix, in any case, that are no settings.
func unknown(environ []string) (problems Problems) {
	examples := known()
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if _, known := examples[name]; !known && strings.HasPrefix(strings.ToUpper(name), Prefix+"_") && !strings.HasPrefix(name, testPrefix) {
			near := check.Nearest(strings.ToUpper(name), slices.Sorted(maps.Keys(examples)))
			problems = append(problems, Problem{Name: name, Fault: "is not a setting; did you mean " + near + "?", Example: near + "=" + examples[near]})
		}
	}
	return problems
}
