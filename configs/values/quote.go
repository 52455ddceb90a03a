package values

import (
	"errors"
	"regexp"
	"strings"
)

// plainValue is what a shell takes as it is.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]*$`)

var escaped = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`")

// Unquote returns the value of a line of an env file: as it is where a shell takes it so,
// or from quotes.
func Unquote(s string) (string, error) {
	switch {
	case len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'' && !strings.Contains(s[1:len(s)-1], "'"):
		return s[1 : len(s)-1], nil
	case doubleQuoted.MatchString(s):
		return escaped.Replace(s[1 : len(s)-1]), nil
	case plainValue.MatchString(s):
		return s, nil
	}
	return "", errors.New("put the value in single quotes")
}

// doubleQuoted holds no quote and no variable that is not escaped.
var doubleQuoted = regexp.MustCompile("^\"([^\"\\\\$`]|\\\\[\"\\\\$`])*\"$")

var escape = strings.NewReplacer(`"`, `\"`, `\`, `\\`, `$`, `\$`, "`", "\\`")

// Quote writes a value without line ends so that Unquote, a shell and systemd read it.
func Quote(s string) string {
	switch {
	case plainValue.MatchString(s) && s != "":
		return s
	case !strings.Contains(s, "'"):
		return "'" + s + "'"
	}
	return `"` + escape.Replace(s) + `"`
}
