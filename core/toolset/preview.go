package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
)

// Bounds of a preview.
const (
	previewFiles    = 20_000 // files and directories of the vault that are visited
	previewExamples = 3
	previewKeeps    = time.Minute
)

// Previews answers what a new user would get, by the rules that decide later.
// A result is kept for a minute.
type Previews struct {
	Set      *Set
	MayRead  func(level core.Trust, user int64, file string) bool
	Model    func(own string, guest bool) string // that answers guests, or others; own: the agent's own choice
	Settings func() any                          // compared: a result is valid while this stays the same

	mu sync.Mutex
	of map[core.Trust]previewed // two levels
	by any                      // of Settings, when they were found
}

type previewed struct {
	at time.Time
	p  core.AccessPreview
}

// newUser is the number of a user who does not exist.
const newUser = int64(1) << 40

// Preview returns what a new user at this level would get.
func (v *Previews) Preview(ctx context.Context, level core.Trust) (core.AccessPreview, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.Set.Clock.Now()
	if by := v.Settings(); v.by != by {
		v.by, v.of = by, nil
	}
	if known, ok := v.of[level]; ok && now.Sub(known.at).Abs() < previewKeeps {
		return known.p, nil
	}
	p, err := v.find(ctx, level)
	if err == nil {
		if v.of == nil {
			v.of = map[core.Trust]previewed{}
		}
		v.of[level] = previewed{now, p}
	}
	return p, err
}

func (v *Previews) find(ctx context.Context, level core.Trust) (p core.AccessPreview, err error) {
	role := v.Set.Agents.Role("", "")
	who := permission.Profile{User: newUser, Trust: core.Least(level, role.Trust), GuestRead: v.Set.GuestRead(), CanAsk: true, Configured: permission.ForGuest(newUser)}
	p.Agent, p.Model = role.Agent.Name, v.Model(role.Model, who.Trust <= core.Sandboxed)
	tools := v.Set.with(who.Trust, false)
	if v.Set.More != nil { // of a message in the user's direct chat
		tools = append(tools, v.Set.More(&orchestrator.Turn{User: newUser, Trust: who.Trust, Rows: []core.Inbound{{Kind: core.KindMessage}}})...)
	}
	for _, x := range tools {
		if role.Agent.Offers(x.Name) && permission.Offered(who, x, v.Set.Isolated()).OK {
			p.Tools = append(p.Tools, x.Name)
		}
	}
	for _, s := range v.Set.Servers.Health() {
		if s.Transport != "" && s.Trust <= who.Trust && role.Agent.Offers("mcp__"+s.Name+"__x") {
			p.Tools = append(p.Tools, "tools of "+s.Name)
		}
	}
	if err := v.files(ctx, who.Trust, &p); err != nil {
		return p, err
	}
	return p, v.actions(who, &p)
}

// files counts the files that the user may read, and names a few.
func (v *Previews) files(ctx context.Context, level core.Trust, p *core.AccessPreview) error {
	visited := 0
	err := fs.WalkDir(v.Set.Vault.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if visited++; visited > previewFiles {
			p.AtLeast = true
			return fs.SkipAll
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // what can't be read isn't counted
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || !v.MayRead(level, newUser, name):
			return nil
		}
		if p.Files++; len(p.Examples) < previewExamples && strings.HasSuffix(name, ".md") {
			p.Examples = append(p.Examples, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// actions evaluates the rules for one call of each kind.
func (v *Previews) actions(who permission.Profile, p *core.AccessPreview) error {
	note := "Notes/some note.md"
	if len(p.Examples) > 0 {
		note = p.Examples[0]
	}
	against := permission.Explained{GuestRead: who.GuestRead, Vault: v.Set.Vault, Configured: &who.Configured}
	for _, act := range []struct{ text, tool, input string }{
		{"read " + note, "Read", note},
		{"write in a folder of their own", "Write", "Guests/1099511627776/x.md"},
		{"change notes of yours", "Write", note},
		{"run a command", "Bash", "ls"},
		{"fetch a page of the web", "WebFetch", "https://example.com/"},
	} {
		if !slices.Contains(p.Tools, act.tool) {
			continue
		}
		input, err := json.Marshal(act.input)
		if err != nil {
			return err
		}
		r, err := permission.Explain(permission.Case{Tool: act.tool, Input: input, As: "guest", Trust: who.Trust.String(), User: who.User}, against)
		if err != nil {
			return err
		}
		switch r.Decision {
		case permission.Allow.String():
			p.Unasked = append(p.Unasked, act.text)
		case permission.MustAsk.String():
			p.Asks = append(p.Asks, act.text)
		}
	}
	return nil
}
