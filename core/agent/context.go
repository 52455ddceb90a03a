package agent

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// Bounds of what an agent's globs and a session's directories bring in.
const (
	maxIncluded = 100    // files that globs name; the prompt lists further ones as omitted
	maxWalked   = 20_000 // entries that are checked for them
	maxContexts = 100    // directories and files of a session
)

// A part is what a prompt has of one file; without text there was no room for it, or it
// was not read because of why.
type part struct {
	name string
	text string
	cut  bool
	why  string
}

// A gatherer collects the files of one prompt, each once.
type gatherer struct {
	a       *Agents
	ctx     context.Context
	mayRead func(string) bool
	trust   core.Trust // of the turn
	exclude []string
	seen    map[string]bool // real names; bounded by the files that fit
	files   int             // bytes left for single files and for those on the way to the working directory
	folders int             // bytes left for the session's directories
	more    bool            // something was left out that is not in a part
}

func (a *Agents) gatherer(ctx context.Context, in *PromptInput) *gatherer {
	g := &gatherer{a: a, ctx: ctx, mayRead: in.MayRead, trust: in.Trust, exclude: in.Agent.Context.Exclude, seen: map[string]bool{},
		files: maxFileTokens * bytesPerToken, folders: maxFolderTokens * bytesPerToken}
	if n := in.Agent.Context.MaxTokens; n > 0 {
		g.files = n * bytesPerToken
	}
	if g.mayRead == nil {
		g.mayRead = func(string) bool { return false }
	}
	return g
}

// way returns what the directories from the vault down to at say, outermost first. The
// nearest gets room first.
func (g *gatherer) way(at vault.Dir, room *int) (parts []part, err error) {
	if !at.Inside {
		return nil, nil
	}
	for dir := at.Rel; ; dir = path.Dir(dir) {
		for i := len(names) - 1; i >= 0 && (at.Exists || dir != at.Rel); i-- {
			if parts, err = g.add(parts, path.Join(dir, names[i]), room); err != nil {
				return nil, err
			}
		}
		if dir == "." {
			break
		}
	}
	slices.Reverse(parts)
	return parts, nil
}

// contexts returns the directories and files of a session, in their order.
func (g *gatherer) contexts(names []string) (parts []part, err error) {
	if len(names) > maxContexts {
		names, g.more = names[:maxContexts], true
	}
	for _, name := range names {
		at, err := g.a.vault.Dir(name)
		if err != nil || !at.Inside {
			continue // what leads out of the vault is no context
		}
		if at.Exists {
			more, err := g.way(at, &g.folders)
			if err != nil {
				return nil, err
			}
			parts = append(parts, more...)
			continue
		}
		if parts, err = g.add(parts, at.Rel, &g.files); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// included returns the files that globs name, by glob and then by name.
func (g *gatherer) included(globs []string) (parts []part, err error) {
	walked, found := 0, 0
	for _, glob := range globs {
		top, _ := doublestar.SplitPattern(strings.TrimPrefix(glob, "./"))
		at, err := g.a.vault.Dir(top)
		if err != nil || !at.Inside || !at.Exists {
			continue
		}
		err = fs.WalkDir(g.a.vault.Root().FS(), at.Rel, func(real string, e fs.DirEntry, err error) error {
			if walked++; walked > maxWalked || found >= maxIncluded {
				g.more = true
				return fs.SkipAll
			}
			if g.ctx.Err() != nil {
				return g.ctx.Err()
			}
			if err != nil { // a directory that cannot be read holds nothing for a prompt
				return nil
			}
			if e.IsDir() {
				if real != at.Rel && strings.HasPrefix(e.Name(), ".") {
					return fs.SkipDir // directories of programs are named outright, or not meant
				}
				return nil
			}
			name := path.Join(top, strings.TrimPrefix(strings.TrimPrefix(real, at.Rel), "/"))
			if at.Rel == "." {
				name = real
			}
			if !matches(glob, name) {
				return nil
			}
			found++
			parts, err = g.add(parts, name, &g.files)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func matches(glob, name string) bool {
	ok, err := doublestar.Match(strings.TrimPrefix(glob, "./"), name)
	return ok && err == nil
}

// add appends one file, cut to the remaining room, unless it is missing, empty, a
// repeat, excluded by the agent, or not readable for the sender. All of that applies to
// its real name too. Instead of a file that is not regular it appends a note.
func (g *gatherer) add(parts []part, name string, room *int) ([]part, error) {
	if !g.mayRead(name) { // before the name is resolved, which costs more
		return parts, nil
	}
	at, err := g.a.vault.Dir(name)
	if err != nil || !at.Inside || g.seen[at.Rel] || !g.mayRead(at.Rel) || g.planted(name) || g.planted(at.Rel) {
		return parts, nil
	}
	for _, glob := range g.exclude {
		if matches(glob, name) || matches(glob, at.Rel) {
			return parts, nil
		}
	}
	open := at.Rel
	if instructs(name) {
		open = path.Clean(name) // a link has no place here, not even one within the vault
	}
	f, err := g.a.files.read(open)
	switch {
	case instructs(name) && (errors.Is(err, errNotRegular) || errors.Is(err, errHardLinked)):
		g.seen[at.Rel] = true
		g.a.files.leave(g.a.o.Log, name, err)
		return append(parts, part{name: name, why: err.Error()}), nil
	case errors.Is(err, errNotRegular) || errors.Is(err, errHardLinked) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return parts, nil // missing, or not ours to see
	case err != nil || f.text == "":
		return parts, err
	}
	g.seen[at.Rel] = true
	p := part{name: name, text: f.text, cut: f.cut}
	if len(p.text) > *room {
		p.text, p.cut = cutLine(p.text, *room), true
	}
	*room -= len(p.text)
	return append(parts, p), nil
}

// planted reports whether a guest may have written the file name and the
// prompt is one of a higher trust.
func (g *gatherer) planted(name string) bool {
	first, _, _ := strings.Cut(path.Clean(name), "/")
	return g.trust > core.Sandboxed && strings.EqualFold(first, core.GuestsDir)
}

// instructs reports whether a file of this name gives instructions to agents.
func instructs(name string) bool {
	return slices.ContainsFunc(names[:], func(n string) bool { return strings.EqualFold(n, path.Base(name)) })
}
