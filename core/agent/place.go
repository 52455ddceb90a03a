package agent

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"gatehouse/core"
	"gatehouse/core/texts"
	"gatehouse/core/vault"
)

// A Worker is the user that a turn works for.
type Worker struct {
	Trust   core.Trust
	User    int64
	MayRead func(name string) bool // as in PromptInput; nil reads nothing
}

// WorkingDirectory resolves where a turn works, with all its tools: the first of wanted
// (the request's, the session's, the workspace's) that is not empty, else the worker's
// own. They are relative to the vault or absolute. One that is missing, or that the
// worker may not read, becomes the worker's own, with a warning; one outside the vault
// is core.Denied below full trust.
func (a *Agents) WorkingDirectory(w Worker, wanted ...string) (vault.Dir, []core.Warning, error) {
	name := cmp.Or(wanted...)
	if name == "" {
		d, err := a.own(w)
		return d, nil, err
	}
	d, err := a.vault.Dir(name)
	if err != nil {
		return vault.Dir{}, nil, err
	}
	if !d.Inside && w.Trust < core.Full {
		return vault.Dir{}, nil, texts.Error(core.Denied, "fault_folder_outside")
	}
	if d.Rel == "." {
		d, err = a.own(w)
		return d, nil, err
	}
	if d.Exists && (w.Trust == core.Full || w.MayRead != nil && w.MayRead(d.Rel)) {
		return d, nil, nil
	}
	why := " does not exist; "
	if w.Trust < core.Full { // which of the two is none of a guest's business
		why = " does not exist or is not open at this trust; "
	}
	if d, err = a.own(w); err != nil {
		return vault.Dir{}, nil, err
	}
	instead := "the vault's root"
	if d.Rel != "." {
		instead = d.Rel
	}
	return d, []core.Warning{{Code: "working_directory_missing", Message: "the working directory " + shown(name) + why + instead + " is used"}}, nil
}

// own returns where the turns of w work that name no directory: the vault, for a
// sandboxed user the directory that is theirs, which may not exist yet.
func (a *Agents) own(w Worker) (vault.Dir, error) {
	if w.Trust == core.Sandboxed && w.User > 0 {
		if d, ok := a.area(core.GuestDir(w.User)); ok {
			return d, nil
		}
	}
	return a.vault.Dir("")
}

// area returns the directory of a guest, which may not exist; false where a link or a file
// is in its place. This is asked for each message, so no path is resolved.
func (a *Agents) area(name string) (vault.Dir, bool) {
	d := vault.Dir{Path: filepath.Join(a.vault.Path(), filepath.FromSlash(name)), Rel: name, Inside: true}
	for _, part := range []string{path.Dir(name), name} {
		st, err := os.Lstat(filepath.Join(a.vault.Path(), part))
		if errors.Is(err, fs.ErrNotExist) {
			return d, true
		}
		if err != nil || !st.IsDir() {
			return vault.Dir{}, false
		}
	}
	d.Exists = true
	return d, true
}
