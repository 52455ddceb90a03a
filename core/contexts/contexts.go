// Package contexts keeps saved contexts: named lists of directories and files that a
// conversation can be about, each a JSON file in Chat/contexts of the vault.
package contexts

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// Dir is the directory of the files, relative to the vault.
const Dir = "Chat/contexts"

// Limits.
const (
	maxPaths       = 100 // of directories and files together: a conversation takes no more
	maxPath        = 1024
	maxDescription = 2000
	maxFile        = 256 << 10
	maxList        = 1000
)

// A Context is a saved one. Paths are relative to the vault.
type Context struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Folders     []string `json:"folders"`
	Files       []string `json:"files"`
}

// Paths returns the directories and files that may reports true for, as a conversation's
// contexts; left is how many it does not.
func (c Context) Paths(may func(name string) bool) (paths []string, left int) {
	for _, p := range slices.Concat(c.Folders, c.Files) {
		if may(p) {
			paths = append(paths, p)
			continue
		}
		left++
	}
	return paths, left
}

// Only returns c with the paths that may reports true for.
func (c Context) Only(may func(name string) bool) Context {
	no := func(p string) bool { return !may(p) }
	c.Folders, c.Files = slices.DeleteFunc(slices.Clone(c.Folders), no), slices.DeleteFunc(slices.Clone(c.Files), no)
	return c
}

var names = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CheckName returns core.Invalid for what is no name. "sessions" is none: the API has
// another address of that name.
func CheckName(name string) error {
	if !names().MatchString(name) || name == "sessions" {
		return core.Errorf(core.Invalid, "a name has 1 to 64 letters, digits, - and _, and begins with a letter or a digit")
	}
	return nil
}

// A Store reads and writes saved contexts. It is safe for concurrent use.
type Store struct{ vault *vault.Vault }

// New returns the contexts in v.
func New(v *vault.Vault) *Store { return &Store{v} }

func fileOf(name string) string { return Dir + "/" + name + ".json" }

// Get returns a context; core.NotFound without it, core.Invalid for a file that is none.
func (s *Store) Get(name string) (Context, error) {
	if err := CheckName(name); err != nil {
		return Context{}, err
	}
	data, err := s.vault.ReadNoLinks(fileOf(name), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Context{}, core.Errorf(core.NotFound, "there is no saved context %s", name)
	}
	if err != nil {
		return Context{}, err
	}
	var c Context
	if json.Unmarshal(data, &c) != nil {
		return Context{}, core.Errorf(core.Invalid, "the file %s is not a saved context: correct it, or save the context again", fileOf(name))
	}
	c.Name = name
	return clean(c)
}

// Put saves c over one of the same name, and returns it as it is kept.
func (s *Store) Put(c Context) (Context, error) {
	if err := CheckName(c.Name); err != nil {
		return Context{}, err
	}
	c, err := clean(c)
	if err != nil {
		return Context{}, err
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return Context{}, err
	}
	return c, s.vault.WriteFile(fileOf(c.Name), append(b, '\n'))
}

// Delete removes a context; core.NotFound without it.
func (s *Store) Delete(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	err := s.vault.Remove(fileOf(name))
	if errors.Is(err, fs.ErrNotExist) {
		return core.Errorf(core.NotFound, "there is no saved context %s", name)
	}
	return err
}

// Names returns the names of the saved contexts, at most 1,000.
func (s *Store) Names() []string {
	entries, err := fs.ReadDir(s.vault.FS(), Dir)
	if err != nil {
		return nil // there are none
	}
	var out []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if ok && CheckName(name) == nil && len(out) < maxList {
			out = append(out, name)
		}
	}
	return out
}

// clean checks the fields of c, and writes paths as conversations keep them.
func clean(c Context) (Context, error) {
	if len(c.Description) > maxDescription || !utf8.ValidString(c.Description) {
		return c, core.Errorf(core.Invalid, "the description has more than %d bytes or is not UTF-8", maxDescription)
	}
	if len(c.Folders)+len(c.Files) > maxPaths {
		return c, core.Errorf(core.Invalid, "a context has at most %d folders and files", maxPaths)
	}
	for _, list := range []*[]string{&c.Folders, &c.Files} {
		out := make([]string, 0, len(*list))
		for _, p := range *list {
			q := path.Clean(strings.TrimSuffix(p, "/"))
			if p == "" || len(p) > maxPath || !fs.ValidPath(q) || q == "." || strings.ContainsAny(p, "\x00\\\n\r") {
				return c, core.Errorf(core.Invalid, "%q is not a path in the vault, such as Notes/Garden", core.CutRunes(p, 100))
			}
			if !slices.Contains(out, q) {
				out = append(out, q)
			}
		}
		*list = out
	}
	return c, nil
}
