// Package files holds the tools that read and change files: Read, Write, Edit,
// and with those of search Glob and Grep, with the names and inputs that models
// know from Claude Code.
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
	"sync"
	"time"

	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
	"gatehouse/core/tool/files/search"
)

// What models are notified of each tool, and what they send.
var (
	//go:embed read.md
	readAbout string
	//go:embed write.md
	writeAbout string
	//go:embed edit.md
	editAbout string

	//go:embed read.json
	readSchema json.RawMessage
	//go:embed write.json
	writeSchema json.RawMessage
	//go:embed edit.json
	editSchema json.RawMessage
)

// timeout of one call.
const timeout = 30 * time.Second

// files is what the tools share.
type files struct {
	open  place.Opener
	seed  maphash.Seed
	locks [64]sync.Mutex // one writer per file, by the hash of its name
	seen  *seen
}

func newFiles() *files {
	return &files{seed: maphash.MakeSeed(), seen: newSeen()}
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
	return append([]tool.Tool{
		{Name: "Read", About: readAbout, Schema: readSchema, Kind: tool.Read, Timeout: timeout,
			Touches: touchRead, Run: f.read},
		{Name: "Write", About: writeAbout, Schema: writeSchema, Kind: tool.Write, Timeout: timeout, Effects: true,
			Touches: touchWrite, Change: f.changeWrite, Run: f.write},
		{Name: "Edit", About: editAbout, Schema: editSchema, Kind: tool.Write, Timeout: timeout, Effects: true,
			Touches: touchEdit, Change: f.changeEdit, Run: f.edit},
	}, search.New(f.open)...)
}
