package vault

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"gatehouse/core"
	form "gatehouse/core/vault/line"
)

// A Line is one line of a transcript, and a Tail its newest lines; see package line.
type (
	Line = form.Line
	Tail = form.Tail
)

// Longest project directory name before it is cut and hashed, as in Claude Code.
const maxProject = 200

// ProjectFolder returns the directory's name for a real absolute working directory:
// every UTF-16 unit outside [A-Za-z0-9] becomes '-'; what is longer than 200
// is cut and ends in a hash of the whole, so that two long paths stay two.
func ProjectFolder(cwd string) string {
	units := utf16.Encode([]rune(cwd))
	var b strings.Builder
	for _, u := range units {
		if u < 128 && (u >= '0' && u <= '9' || u >= 'A' && u <= 'Z' || u >= 'a' && u <= 'z') {
			b.WriteByte(byte(u))
		} else {
			b.WriteByte('-')
		}
	}
	if b.Len() <= maxProject {
		return b.String()
	}
	var h int32
	for _, u := range units {
		h = h*31 + int32(u) // the 31-hash, in 32 bits, that the CLI's SDK uses under Node
	}
	n := int64(h)
	if n < 0 {
		n = -n
	}
	return b.String()[:maxProject] + "-" + strconv.FormatInt(n, 36)
}

// maxID bounds a session id in a file name.
const maxID = 128

// ValidID reports whether a session id may be part of a file name: 1 to 128
// of [A-Za-z0-9_-].
func ValidID(id string) bool {
	for _, r := range id {
		if !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-' || r == '_') {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// Transcript returns the name of a session's file:
// .claude/projects/{ProjectFolder(real cwd)}/{session}.jsonl. cwd is absolute or
// relative to the vault ("" is the vault). An id that ValidID refuses is
// core.Invalid.
func (v *Vault) Transcript(cwd, session string) (string, error) {
	if !ValidID(session) {
		return "", core.Errorf(core.Invalid, "the session id is not valid")
	}
	d, err := v.Dir(cwd)
	if err != nil {
		return "", err
	}
	return projectDir + "/" + ProjectFolder(d.Path) + "/" + session + ".jsonl", nil
}
