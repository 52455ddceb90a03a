package entry

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// maxShort bounds a server's name within the names of its tools, which are of
// at most 64 characters in all.
const maxShort = 24

// shorten makes a name of letters, digits, _ and -, without two _ in a row: a
// tool's name is cut at these. What is too long ends in a hash of the whole.
func shorten(name string, limit int) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-':
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	short := strings.Trim(b.String(), "_")
	if short == "" || len(short) > limit {
		sum := sha256.Sum256([]byte(name))
		mark := hex.EncodeToString(sum[:3])
		short = strings.Trim(short[:min(len(short), limit-len(mark)-1)]+"-"+mark, "_-")
	}
	return short
}

// unique returns name, or name with a number where it is taken.
func unique(name string, limit int, taken func(string) bool) string {
	for n, base := 2, name; taken(name); n++ {
		end := "-" + strconv.Itoa(n)
		name = base[:min(len(base), limit-len(end))] + end
	}
	return name
}

// ToolName returns what a server's tool is called here.
func ToolName(server, tool string, taken func(string) bool) string {
	start := "mcp__" + server + "__"
	room := 64 - len(start)
	return start + unique(shorten(tool, room), room, func(n string) bool { return taken(start + n) })
}
