package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	adminpeople "gatehouse/admin/people"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/permission"
)

// Bounds of a look at what somebody would see.
const (
	previewLook  = 20_000 // files and folders of the vault
	previewShown = 3      // examples
	previewKeeps = time.Minute
)

// previews says what a new person would see and do, by the same rules that
// decide when they are let in. What it has found holds for a minute.
type previews struct {
	a   *app
	mu  sync.Mutex
	of  map[core.Trust]previewed // two levels
	cfg *configs.Config          // under which they were found
}

type previewed struct {
	at time.Time
	p  adminpeople.Preview
}

// somebody is a person who has not been let in: nobody's number.
const somebody = int64(1) << 40

// Preview implements the panel's question.
func (v *previews) Preview(ctx context.Context, level core.Trust) (adminpeople.Preview, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.a.clock.Now()
	if cfg := v.a.settings.Now(); v.cfg != cfg { // settings were changed: what was found holds no more
		v.cfg, v.of = cfg, nil
	}
	if known, ok := v.of[level]; ok && now.Sub(known.at).Abs() < previewKeeps {
		return known.p, nil
	}
	p, err := v.look(ctx, level)
	if err == nil {
		if v.of == nil {
			v.of = map[core.Trust]previewed{}
		}
		v.of[level] = previewed{now, p}
	}
	return p, err
}

func (v *previews) look(ctx context.Context, level core.Trust) (p adminpeople.Preview, err error) {
	role := v.a.agents.Role("", "")
	p.Agent, p.Model = role.Agent.Name, role.Model
	if m := v.a.models.Now(); m.Guest != nil || p.Model == "" {
		p.Model = m.ForGuests()
	}
	who := permission.Profile{User: somebody, Trust: core.Least(level, role.Trust), GuestRead: v.a.settings.Now().GuestRead, CanAsk: true, Configured: permission.ForGuest(somebody)}
	k := v.a.kits
	tools := k.tools
	if x, ok := k.skillTool(who.Trust); ok {
		tools = append(tools[:len(tools):len(tools)], x)
	}
	for _, x := range tools {
		if role.Agent.Offers(x.Name) && permission.Offered(who, x, k.box != nil).OK {
			p.Tools = append(p.Tools, x.Name)
		}
	}
	for _, s := range v.a.servers.Health() {
		if s.Transport != "" && s.Trust <= who.Trust && role.Agent.Offers("mcp__"+s.Name+"__x") {
			p.Tools = append(p.Tools, "tools of "+s.Name)
		}
	}
	if err := v.files(ctx, who.Trust, &p); err != nil {
		return p, err
	}
	return p, v.deeds(who, &p)
}

// files counts what such a person may read, and names a few.
func (v *previews) files(ctx context.Context, level core.Trust, p *adminpeople.Preview) error {
	looked := 0
	err := fs.WalkDir(v.a.vault.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if looked++; looked > previewLook {
			p.AtLeast = true
			return fs.SkipAll
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // what can't be looked into isn't shown either
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || !v.a.mayRead(level, somebody, name):
			return nil
		}
		if p.Files++; len(p.Examples) < previewShown && strings.HasSuffix(name, ".md") {
			p.Examples = append(p.Examples, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// deeds asks the rules about one call of each sort.
func (v *previews) deeds(who permission.Profile, p *adminpeople.Preview) error {
	note := "Notes/some note.md"
	if len(p.Examples) > 0 {
		note = p.Examples[0]
	}
	against := permission.Explained{GuestRead: who.GuestRead, Vault: v.a.vault, Configured: &who.Configured}
	for _, deed := range []struct{ words, tool, input string }{
		{"read " + note, "Read", note},
		{"write in a folder of their own", "Write", "Guests/1099511627776/x.md"},
		{"change notes of yours", "Write", note},
		{"run a command", "Bash", "ls"},
		{"fetch a page of the web", "WebFetch", "https://example.com/"},
	} {
		if !slices.Contains(p.Tools, deed.tool) {
			continue
		}
		input, err := json.Marshal(deed.input)
		if err != nil {
			return err
		}
		r, err := permission.Explain(permission.Case{Tool: deed.tool, Input: input, As: "guest", Trust: who.Trust.String(), User: who.User}, against)
		if err != nil {
			return err
		}
		switch r.Decision {
		case permission.Allow.String():
			p.Unasked = append(p.Unasked, deed.words)
		case permission.MustAsk.String():
			p.Asks = append(p.Asks, deed.words)
		}
	}
	return nil
}
