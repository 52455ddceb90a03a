package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gatehouse/configs/check"
	"gatehouse/configs/values"
)

// An EnvLine is one setting of an env file.
type EnvLine struct{ Name, Value string }

var (
	anyName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
	envName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(GATEHOUSE_[A-Z0-9_]+|VAULT_PATH|PORT)$`) })
)

// readEnvFile reads lines NAME=value, as a shell, systemd and we understand
// them alike: values without quotes hold no blanks and none of the characters
// that a shell gives a meaning to, 'single quotes' hold anything but
// themselves, "double quotes" know \" \\ \$ and \`. Blank lines, lines that
// begin with # and a leading "export" are passed over. Only our own names are
// taken. The error is Problems, by file and line and without any value.
func readEnvFile(path string) ([]EnvLine, error) {
	text, mode, err := values.ReadBounded(path, maxBotsFile)
	if err != nil {
		if at := (*fs.PathError)(nil); errors.As(err, &at) { // the path precedes it already
			err = at.Err
		}
		return nil, Problems{{Name: path, Fault: err.Error()}}
	}
	var lines []EnvLine
	var problems Problems
	if err := check.Private(path, mode, true); err != nil {
		problems = append(problems, Problem{Name: path, Fault: err.Error()})
	}
	seen := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
		if line == "" || line[0] == '#' {
			continue
		}
		where := fmt.Sprintf("%s:%d", path, i+1)
		name, rest, ok := strings.Cut(line, "=")
		value, err := values.Unquote(rest)
		switch {
		case !ok || !anyName().MatchString(name):
			problems = append(problems, Problem{Name: where, Fault: "this line is not NAME=value", Example: Prefix + "_LOG_LEVEL=info"})
		case !envName().MatchString(name):
			problems = append(problems, Problem{Name: where, Fault: "only settings of this program are allowed here: names that begin with " + Prefix + "_, VAULT_PATH and PORT" + check.MeantOf(Prefix+"_", name, known())})
		case seen[name]:
			problems = append(problems, Problem{Name: where, Fault: name + " is set above already"})
		case err != nil:
			problems = append(problems, Problem{Name: where, Fault: name + ": " + err.Error(), Example: name + "='value'"})
		default:
			lines = append(lines, EnvLine{name, value})
		}
		seen[name] = true
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return lines, nil
}

const envHead = "# Settings of Gatehouse. This file holds secrets: keep its mode at 0600.\n" +
	"# docs/settings.md lists every setting.\n"

// WriteEnvFile writes what ReadEnvFile reads, whole or not at all, with mode
// 0600. A file that is there is kept (fs.ErrExist) unless replace is set.
// Invalid: a value holds a line end.
func WriteEnvFile(path string, lines []EnvLine, replace bool) (err error) {
	var b strings.Builder
	b.WriteString(envHead)
	for _, l := range lines {
		if strings.ContainsAny(l.Value, "\r\n\x00") || !envName().MatchString(l.Name) {
			return fmt.Errorf("%s cannot be written to a settings file", l.Name)
		}
		b.WriteString(l.Name + "=" + values.Quote(l.Value) + "\n")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".gatehouse-env-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(b.String())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if replace {
		return os.Rename(f.Name(), path)
	}
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) { // unlike a rename, it replaces nothing
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	} else if err != nil {
		return err
	}
	return nil
}

// UseEnvFile adds the settings of an env file to the process's environment,
// before Load. A setting that is set there already, by whichever of its names, stays.
func UseEnvFile(path string) error {
	lines, err := readEnvFile(path)
	if err != nil {
		return err
	}
	lines = slices.DeleteFunc(lines, func(l EnvLine) bool { return inEnvironment(l.Name) })
	for _, l := range lines {
		if err := os.Setenv(l.Name, l.Value); err != nil {
			return fmt.Errorf("set %s: %w", l.Name, err)
		}
	}
	return nil
}

// inEnvironment reports whether the setting with this name, among its names, is set.
func inEnvironment(name string) bool {
	for _, f := range fields() {
		names := []string{f.Name, f.bare(), f.Name + "_FILE"}
		if slices.Contains(names, name) {
			return slices.ContainsFunc(names, func(n string) bool { return os.Getenv(n) != "" })
		}
	}
	return false // no setting: Load reports it
}

// CheckToken reports what is wrong with the form of a platform's token.
func CheckToken(platform, token string) error {
	p, ok := platformNamed(platform)
	if !ok {
		return fmt.Errorf("%s is no platform", platform)
	}
	return p.token(token)
}

// Kept returns the settings that the environment gives, as lines of an env file:
// values, and the files of secrets; secrets themselves are left out and named.
func (c *Config) Kept() (lines []EnvLine, secrets []string) {
	for _, f := range fields() {
		switch source := c.Source(f.short()); {
		case source == SourceFile:
			lines = append(lines, EnvLine{f.Name + "_FILE", c.files[f.short()].path})
		case source == SourceEnvironment && f.secret():
			secrets = append(secrets, f.Name)
		case source == SourceEnvironment:
			lines = append(lines, EnvLine{f.Name, values.Format(f.in(c).Interface())})
		}
	}
	return lines, secrets
}
