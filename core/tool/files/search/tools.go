// Package search holds the tools that find files: Glob by their names and Grep
// by their text. Every directory and file that they meet is asked for at the Turn's
// bounds and opened as place opens it; what is refused is neither entered nor
// named nor counted. Patterns come from models, and so from strangers: whatever
// is written in them, a search takes bounded time and memory.
package search

import (
	_ "embed"
	"encoding/json"
	"time"

	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

// What models are notified of each tool, and what they send.
var (
	//go:embed glob.md
	globAbout string
	//go:embed grep.md
	grepAbout string
	//go:embed glob.json
	globSchema json.RawMessage
	//go:embed grep.json
	grepSchema json.RawMessage
)

// timeout of one call. Searches end on their own before it and say so.
const timeout = 30 * time.Second

type searcher struct{ open place.Opener }

// New makes Glob and Grep.
func New(open place.Opener) []tool.Tool {
	s := searcher{open}
	return []tool.Tool{
		{Name: "Glob", About: globAbout, Schema: globSchema, Kind: tool.Read, Timeout: timeout,
			Touches: touchGlob, Run: s.glob},
		{Name: "Grep", About: grepAbout, Schema: grepSchema, Kind: tool.Read, Timeout: timeout,
			Touches: touchGrep, Run: s.grep},
	}
}
