// Package tool reports what a tool is: a value with a name, a schema, what a call
// would touch, and the work itself. The packages below it hold the tools; what
// may be called, and by whom, is decided elsewhere (core/permission), before
// Run: a tool only keeps to what was decided.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// A Kind is what sort of thing a tool does; permissions go by it.
type Kind string

// Kinds of tools.
const (
	Read    Kind = "read"    // reads files: Read, Glob, Grep, Search
	Write   Kind = "write"   // changes files: Write, Edit
	Shell   Kind = "bash"    // runs commands: Bash
	Network Kind = "network" // fetches or searches the web: WebFetch, WebSearch
	MCP     Kind = "mcp"     // a tool of an MCP server
	Inner   Kind = "inner"   // stays inside the gateway: Task, Skill, AskUserQuestion
)

// A Tool is one thing that a model may ask for. It is safe for concurrent use.
type Tool struct {
	Name   string          // "Read"; of an MCP server "mcp__<server>__<tool>"; [A-Za-z0-9_-]{1,64}
	About  string          // Markdown, for the model
	Schema json.RawMessage // JSON schema of the input, an object
	Kind   Kind
	// Isolated: below full trust it runs in a sandbox, and is not offered where there is
	// none.
	Isolated bool
	// Least is the lowest trust that is offered this tool, the zero value for
	// all. An MCP server's mark ("trust: vault") is here.
	Least core.Trust
	// Effects: a second run could do something a second time (honest retries).
	Effects bool
	// Again: a call that is made a second time under its ID has no second effect, so one
	// that a restart has interrupted is made again. Without it the model is asked.
	Again bool
	// Timeout of one call; 0 is 60 s. The context of Run ends with it.
	Timeout time.Duration
	// Touches reports what a call would touch, before anything is decided. It
	// changes nothing. Bad input is core.Invalid with words for the model.
	// Nil: nothing that needs a decision.
	Touches func(t *Turn, input json.RawMessage) (Access, error)
	// Change returns what the call would change, for the user who is asked about it.
	// It changes nothing, and reads only what c.Turn may read. The error is text
	// for that user alone. Nil: nothing that can be shown.
	Change func(ctx context.Context, c *Call) (Change, error)
	// Run does the work and keeps to c.Access. A Result with IsError, and an
	// error of a core.Kind, are reported to the model; any other error is ours and
	// is reported as "internal error". It returns soon after ctx ends, with
	// everything that it started ended too.
	Run func(ctx context.Context, c *Call) (Result, error)
}

// An Access is what one call touches. Names of files are as Turn.Name makes
// them: slash paths relative to the vault, links resolved; absolute outside.
type Access struct {
	Read    []string // files, or directories that are searched
	Write   []string
	Command string // of a shell, as the model wrote it
	Dir     string // absolute path of the directory that Command starts in; "" is the vault
	URL     string
}

// A Turn is the user that calls work for and their bounds; one per run.
type Turn struct {
	User    int64
	Trust   core.Trust
	Session string
	Run     string
	Vault   *vault.Vault
	Dir     vault.Dir // working directory
	// MayRead and MayWrite are the bounds that no grant opens (deny list,
	// write-deny list, the trust's own area), by name as Name makes it. They
	// hold for every file that a call meets on its way, also those that Touches
	// could not name (hits of a search), and are asked again on what was
	// really opened.
	MayRead, MayWrite func(name string) bool
}

// A Query is what is looked for on the web.
type Query struct {
	Text    string
	Only    []string // results of these domains alone; empty: of all
	Without []string // none of these
}

// A Finding is what a search brought: pages, and where someone has read them
// for us what is there. All of it was written by strangers.
type Finding struct {
	Answer string
	Pages  []Page
}

// A Page is one result of a search.
type Page struct{ Title, URL, Passage string }

// A Look looks for something on the web. Its errors are as a tool's.
type Look func(ctx context.Context, c *Call, q Query) (Finding, error)

// MaxPath bounds a path as a model writes it, in bytes: Linux's own limit.
const MaxPath = 4096

// Name returns where a path as the model wrote it really is: relative to the
// working directory or absolute, links resolved as far as it exists. Inside
// the vault it is a slash path relative to the vault ("." is the vault),
// outside it is absolute.
func (t *Turn) Name(path string) (string, error) {
	if len(path) > MaxPath {
		return "", core.Errorf(core.Invalid, "the path is longer than %d bytes", MaxPath)
	}
	d, err := t.Vault.Resolve(t.Dir.Path, path)
	if err != nil {
		return "", err
	}
	if d.Inside {
		return d.Rel, nil
	}
	return d.Path, nil
}

// A Call is one tool use that was allowed.
type Call struct {
	ID     string
	Input  json.RawMessage
	Turn   *Turn
	Access Access // what Touches returned and was decided on
	// Shown is the Change.State that a user was shown and approved, "" for none.
	// Run refuses the call when the file has another state.
	Shown string
	// Progress shows what goes on, in a few words; never nil. It may be called
	// from any goroutine, until Run returns.
	Progress func(text string)
}

// A Change is the content of one file before a call and after it.
type Change struct {
	Before *string // nil: there is no such file
	After  string
	State  string // identifies the content before
}

// A Result is what the model reads of a call.
type Result struct {
	Text    string
	IsError bool
	Media   []core.Media // pictures and documents that were read
}

// Failed returns a Result that notifies the model what went wrong.
func Failed(text string) Result { return Result{Text: text, IsError: true} }
