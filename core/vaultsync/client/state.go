package client

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gatehouse/core"
	"gatehouse/core/vaultsync/wire"
)

// A state is what the client knows after a run.
type state struct {
	Version int               `json:"version"`
	Server  string            `json:"server"`
	Cursor  string            `json:"cursor"`
	Files   map[string]*known `json:"files"` // by path; at most wire.MaxFiles of each side
}

// A known is a file: hashes of contents, "" for no file.
type known struct {
	Base   string `json:"b,omitempty"` // both sides had it, or the server knows that it was edited here
	Remote string `json:"r,omitempty"` // the server has it
	Local  string `json:"l,omitempty"` // the directory has it
	Mark   string `json:"m,omitempty"` // of the file that has Local (place.Found)
}

// of returns what is known of a file, which may be nothing.
func (s *state) of(name string) *known {
	k := s.Files[name]
	if k == nil {
		k = &known{}
		s.Files[name] = k
	}
	return k
}

const (
	stateName    = "state.json"
	stateVersion = 1
)

// load reads the state. That of another server is not used: then all files are compared.
func (c *Client) load() error {
	c.state = state{Version: stateVersion, Server: c.o.Server, Files: map[string]*known{}}
	data, err := os.ReadFile(c.statePath(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var was state
	if err == nil {
		err = json.Unmarshal(data, &was)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read what was synced last: %w", err)
	case was.Version != stateVersion:
		return core.Errorf(core.Conflict, "%s was written by another version: remove it to compare all files again", c.statePath(stateName))
	case was.Server != c.o.Server:
		return core.Errorf(core.Conflict, "%s is synced with %s: give that as --server, or remove %s to compare all files again", c.o.Dir, was.Server, filepath.Join(c.o.Dir, wire.StateDir))
	}
	if was.Files != nil {
		c.state, c.saved = was, sha256.Sum256(data)
	}
	return nil
}

func (c *Client) statePath(name string) string {
	return filepath.Join(c.o.Dir, wire.StateDir, name)
}

// save writes the state in one step, if it is not stored as it is.
func (c *Client) save() error {
	data, err := json.Marshal(c.state)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if sum == c.saved {
		return nil
	}
	c.step("state")
	temp := c.statePath(stateName + ".new")
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	c.step("state written")
	if err := os.Rename(temp, c.statePath(stateName)); err != nil {
		return err
	}
	c.saved = sum
	return nil
}

func (c *Client) step(what string) {
	if c.o.Step != nil {
		c.o.Step(what)
	}
}
