// Package files holds the tools that read and change files: Read, Write, Edit,
// Glob and Grep, with the names and inputs that models know from Claude Code.
//
// They run in the gateway's own process, so they are careful: every file is
// opened through os.Root (below full trust nothing outside of the vault is ever
// opened), without waiting for pipes or devices, and what was opened is then
// asked for its real name, which must be the one that was decided on. A link, a
// rename or a second hard link in between gains nothing. The bounds of the Turn
// are asked for every file that is met on the way, and nothing that they refuse
// is named.
package files

import (
	_ "embed"
	"encoding/json"
	"hash/maphash"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// What models are told of each tool, and what they send.
var (
	//go:embed read.md
	readAbout string
	//go:embed write.md
	writeAbout string
	//go:embed edit.md
	editAbout string
	//go:embed glob.md
	globAbout string
	//go:embed grep.md
	grepAbout string

	//go:embed read.json
	readSchema json.RawMessage
	//go:embed write.json
	writeSchema json.RawMessage
	//go:embed edit.json
	editSchema json.RawMessage
	//go:embed glob.json
	globSchema json.RawMessage
	//go:embed grep.json
	grepSchema json.RawMessage
)

// timeout of one call. Searches end by themselves before it and say so.
const timeout = 30 * time.Second

// files is what the five tools share.
type files struct {
	proc  string // where the kernel names open files
	seed  maphash.Seed
	locks [64]sync.Mutex // one writer per file, by the hash of its name
	seen  *seen
}

func newFiles() *files {
	return &files{proc: "/proc/self/fd", seed: maphash.MakeSeed(), seen: newSeen()}
}

// lock keeps two changes of one file apart, also those of parallel calls.
func (f *files) lock(path string) (unlock func()) {
	m := &f.locks[maphash.String(f.seed, path)%uint64(len(f.locks))]
	m.Lock()
	return m.Unlock
}

// New makes Read, Write, Edit, Glob and Grep. They share one memory of which
// file was read in which session; one set serves the whole gateway.
func New() []tool.Tool { return newFiles().tools() }

func (f *files) tools() []tool.Tool {
	return []tool.Tool{
		{Name: "Read", About: readAbout, Schema: readSchema, Kind: tool.Read, Timeout: timeout,
			Touches: touchRead, Run: f.read},
		{Name: "Write", About: writeAbout, Schema: writeSchema, Kind: tool.Write, Timeout: timeout, Effects: true,
			Touches: touchWrite, Run: f.write},
		{Name: "Edit", About: editAbout, Schema: editSchema, Kind: tool.Write, Timeout: timeout, Effects: true,
			Touches: touchEdit, Run: f.edit},
		{Name: "Glob", About: globAbout, Schema: globSchema, Kind: tool.Read, Timeout: timeout,
			Touches: touchGlob, Run: f.glob},
		{Name: "Grep", About: grepAbout, Schema: grepSchema, Kind: tool.Read, Timeout: timeout,
			Touches: touchGrep, Run: f.grep},
	}
}

// decided is the one name of a call that was decided on.
func decided(names []string, shown string) (string, error) {
	if len(names) != 1 {
		return "", core.Errorf(core.Denied, "%s: this call was not decided on", shown)
	}
	return names[0], nil
}

// show is a name as the model may use it again: relative to the working
// directory in the vault, absolute outside.
func show(t *tool.Turn, name string) string {
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
