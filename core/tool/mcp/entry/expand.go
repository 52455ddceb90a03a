package entry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gatehouse/core"
)

var (
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName = core.Pattern("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$") // RFC 9110, section 5.6.2
	reference  = regexp.MustCompile(`\$\{([^{}]*)\}`)
)

// minSecret is the length from which a value is taken out of logs and errors;
// shorter ones would take whole words with them.
const minSecret = 6

// variables are those of the gateway's environment that the file may name.
type variables struct {
	names []string          // that may be named
	set   map[string]string // those of them that are set
}

func newVariables(names, environ []string) variables {
	v := variables{names: names, set: map[string]string{}}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && slices.Contains(names, name) {
			v.set[name] = value
		}
	}
	return v
}

// replace inserts values for ${NAME} and ${NAME:-default}. A name that is
// not listed is an error even with a default: who wrote it relies on it.
func (v variables) replace(s *Server, text string) (string, error) {
	var wrong error
	out := reference.ReplaceAllStringFunc(text, func(ref string) string {
		name, otherwise, optional := strings.Cut(ref[2:len(ref)-1], ":-")
		value, err := v.value(name, otherwise, optional)
		if err != nil && wrong == nil {
			wrong = err
		}
		s.hide(value)
		return value
	})
	return out, wrong
}

func (v variables) value(name, otherwise string, optional bool) (string, error) {
	switch value := v.set[name]; {
	case !variable.MatchString(name):
		return "", fmt.Errorf("${%.64s} is not the name of a variable", name)
	case !slices.Contains(v.names, name):
		return "", fmt.Errorf("${%.64s} is not listed in GATEHOUSE_MCP_ENV", name)
	case value != "":
		return value, nil
	case optional:
		return otherwise, nil
	}
	return "", fmt.Errorf("${%.64s} is not set in the gateway's environment", name)
}

func (v variables) each(s *Server, list []string) (err error) {
	for i := range list {
		if list[i], err = v.replace(s, list[i]); err != nil {
			return err
		}
	}
	return nil
}

// values replaces in a map whose values are not shown.
func (v variables) values(s *Server, m map[string]string) (err error) {
	for name := range m {
		if m[name], err = v.replace(s, m[name]); err != nil {
			return err
		}
		s.hide(m[name])
		if _, rest, ok := strings.Cut(m[name], " "); ok {
			s.hide(rest) // of "Bearer …"
		}
	}
	return nil
}

// hide keeps a value out of logs and errors.
func (s *Server) hide(value string) {
	if value = strings.TrimSpace(value); len(value) >= minSecret {
		s.secrets = append(s.secrets, value)
		slices.SortFunc(s.secrets, func(a, b string) int { return len(b) - len(a) })
	}
}

// Redact is text without the server's secrets.
func (s *Server) Redact(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return text
}
