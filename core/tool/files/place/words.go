package place

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// Decided returns the one name of a call that was decided on.
func Decided(names []string, shown string) (string, error) {
	if len(names) != 1 {
		return "", core.Errorf(core.Denied, "%s: this call was not decided on", shown)
	}
	return names[0], nil
}

// Show returns a name as the model may use it again: relative to the working
// directory in the vault, absolute outside.
func Show(t *tool.Turn, name string) string {
	if !filepath.IsAbs(name) {
		if rel, err := filepath.Rel(t.Dir.Path, filepath.Join(t.Vault.Path(), name)); err == nil {
			name = filepath.ToSlash(rel)
		}
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// Shown returns a path that the model wrote, as results and errors name it. Below
// full trust that is never a path of the host, also where the model wrote one:
// what users are shown leaves the conversation.
func Shown(t *tool.Turn, path string) string {
	if t.Trust >= core.Full || path == "" || filepath.IsLocal(path) {
		return path
	}
	name, err := t.Name(path)
	if err != nil || filepath.IsAbs(name) {
		return "the path"
	}
	return Show(t, name)
}

// Binary reports whether data is no text: text has no NUL.
func Binary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 }
