// Package search holds the tool that searches the index of documents and
// conversations for a turn.
package search

import (
	"context"
	_ "embed"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/core"
	index "gatehouse/core/index/search"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

var (
	//go:embed search.md
	about string
	//go:embed search.json
	schema json.RawMessage
)

// Limits of one call.
const (
	timeout      = 30 * time.Second
	defaultLimit = 10 // hits
	maxLimit     = 20 // hits
)

// A Finder searches the index.
type Finder interface {
	Search(ctx context.Context, q index.Query, r index.Reader) (index.Page, error)
}

// New returns the tool Search over f. It finds documents that the turn may read and, with
// conversations, entries of journals and the conversations of the turn's user up to the turn's
// trust. Without, it finds neither: a group's answers are read by others than their owner.
func New(f Finder, conversations bool) tool.Tool {
	s := searcher{f, conversations}
	return tool.Tool{Name: "Search", About: about, Schema: schema, Kind: tool.Read, Timeout: timeout, Touches: touches, Run: s.run}
}

type searcher struct {
	find          Finder
	conversations bool
}

type input struct {
	Query  string `json:"query" tool:"required"`
	Type   string `json:"type"`
	Folder string `json:"folder"`
	Limit  *int   `json:"limit"`
}

func decode(raw json.RawMessage) (in input, err error) {
	if err := tool.Decode(raw, &in); err != nil {
		return in, err
	}
	if in.Query = strings.TrimSpace(in.Query); in.Query == "" {
		return in, core.Errorf(core.Invalid, "query is empty")
	}
	switch in.Type {
	case "", index.Document, index.Journal:
	case "conversation", index.Session:
		in.Type = index.Session
	default:
		return in, core.Errorf(core.Invalid, "type is one of document, journal, conversation")
	}
	if in.Limit != nil && (*in.Limit < 1 || *in.Limit > maxLimit) {
		return in, core.Errorf(core.Invalid, "limit is a number from 1 to %d", maxLimit)
	}
	return in, nil
}

// dir returns the directory that is searched, as the model may have written it.
func (in *input) dir() string {
	if in.Folder == "" {
		return "."
	}
	return in.Folder
}

func touches(t *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	in, err := decode(raw)
	if err != nil {
		return tool.Access{}, err
	}
	name, err := t.Name(in.dir())
	if err == nil && filepath.IsAbs(name) {
		err = core.Errorf(core.Invalid, "only folders of the vault are indexed: use Grep for %s", place.Shown(t, in.Folder))
	}
	return tool.Access{Read: []string{name}}, err
}

func (s searcher) run(ctx context.Context, c *tool.Call) (tool.Result, error) {
	in, err := decode(c.Input)
	if err != nil {
		return tool.Result{}, err
	}
	folder, err := place.Decided(c.Access.Read, place.Shown(c.Turn, in.dir()))
	if err != nil {
		return tool.Result{}, err
	}
	q := index.Query{Text: in.Query, Limit: defaultLimit}
	if in.Limit != nil {
		q.Limit = *in.Limit
	}
	if in.Folder != "" && folder != "." {
		q.Folder = folder
	}
	r := index.Reader{User: c.Turn.User, Trust: c.Turn.Trust, NoSessions: !s.conversations, MayRead: within(c.Turn, folder, in.Folder == "")}
	switch {
	case in.Type != "" && in.Type != index.Document && !s.conversations:
		return tool.Failed("Conversations and journals are not searched in a group: others would read them. Search documents."), nil
	case in.Type != "":
		q.Types = []string{in.Type}
	case !s.conversations:
		q.Types = []string{index.Document}
	}
	page, err := s.find.Search(ctx, q, r)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: show(c.Turn, page)}, nil
}

// within returns which files a call may show: those that the turn may read in the
// directory that the call was allowed for. Guests who named none are shown what is open to
// all guests too: it lies outside of their working directory, and reading it never asks.
func within(t *tool.Turn, folder string, byDefault bool) func(name string) bool {
	return func(name string) bool {
		inside := folder == "." || strings.HasPrefix(name, folder+"/") || byDefault && t.Bounded() && !tool.InGuests(name)
		return inside && place.May(t.MayRead, name)
	}
}
