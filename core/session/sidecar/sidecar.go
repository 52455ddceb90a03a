// Package sidecar keeps a JSON file in the vault for every session, with what the
// database knows of it other than its messages, so that a lost database can be rebuilt.
package sidecar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// Dir is the directory of the sidecars, a slash path relative to the vault.
const Dir = ".parachute/sessions"

// maxDirty bounds the sidecars that wait; beyond it one is dropped. The next start
// writes it (session.Store.Repair).
const maxDirty = 4096

// maxSize is in bytes. Tags, contexts and metadata at their limits take a third of it.
const maxSize = 1 << 20

// A Sidecar is what the vault stores of a session in addition to its messages, so that
// the database can be rebuilt from it.
type Sidecar struct {
	ID          string     `json:"id"`
	User        int64      `json:"user_id"`
	Trust       core.Trust `json:"trust_level"`
	Title       string     `json:"title"`
	TitleSource string     `json:"title_source"`
	Tags        []string   `json:"tags"`
	Archived    bool       `json:"archived"`
	Bot         string     `json:"bot,omitempty"`
	Chat        string     `json:"chat,omitempty"`
	Thread      string     `json:"thread,omitempty"`
	Place       string     `json:"place,omitempty"`
	Scope       core.Scope `json:"scope,omitempty"`
	Source      string     `json:"source"`
	CreatedAt   string     `json:"created_at"`

	Module           string          `json:"module,omitempty"`
	AgentType        string          `json:"agent_type,omitempty"`
	WorkingDirectory string          `json:"working_directory,omitempty"`
	VaultRoot        string          `json:"vault_root,omitempty"`
	ContinuedFrom    string          `json:"continued_from,omitempty"`
	Workspace        string          `json:"workspace,omitempty"`
	Project          string          `json:"project_id,omitempty"`
	ChosenModel      string          `json:"chosen_model,omitempty"`
	Contexts         []string        `json:"contexts,omitempty"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`
}

// Of returns the sidecar of s, which is bound to chat.
func Of(s transcript.Session, chat core.Address, tags, contexts []string) Sidecar {
	if tags == nil {
		tags = []string{}
	}
	return Sidecar{
		ID: s.ID, User: s.User, Trust: s.TrustLevel, Title: s.Title, TitleSource: s.TitleSource, Tags: tags,
		Archived: s.Archived, Bot: chat.Bot, Chat: chat.Chat, Thread: chat.Thread, Place: chat.Place, Scope: s.Scope,
		Source: s.Source, CreatedAt: core.Stamp(s.CreatedAt),
		Module: s.Module, AgentType: s.AgentType, WorkingDirectory: s.WorkingDirectory, VaultRoot: s.VaultRoot,
		ContinuedFrom: s.ContinuedFrom, Workspace: s.Workspace, Project: s.Project, ChosenModel: s.ChosenModel, Contexts: contexts, Metadata: s.Metadata,
	}
}

// Name returns the file of the session id, a slash path relative to the vault.
func Name(id string) string { return Dir + "/" + id + ".json" }

func (c Sidecar) encode() ([]byte, error) {
	b, err := json.MarshalIndent(c, "", "  ")
	return append(b, '\n'), err
}

// Files reads and writes sidecars. It is safe for concurrent use; Close it.
type Files struct {
	vault *vault.Vault
	log   *slog.Logger

	mu      sync.Mutex
	dirty   map[string]Sidecar // waiting for the writer; bounded by maxDirty
	writing bool
	now     string     // the session whose sidecar is being written
	idle    *sync.Cond // signalled when a sidecar is written
}

// New returns the sidecars in v.
func New(v *vault.Vault, log *slog.Logger) *Files {
	f := &Files{vault: v, log: log, dirty: map[string]Sidecar{}}
	f.idle = sync.NewCond(&f.mu)
	return f
}

// Close waits until the sidecars of committed changes are written.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.writing {
		f.idle.Wait()
	}
	return nil
}

// Keep writes c after the commit of tx, in a goroutine that lives as long as there is
// something to write: the database's writer never waits for a file.
func (f *Files) Keep(tx *store.Tx, c Sidecar) {
	tx.OnCommit(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, ok := f.dirty[c.ID]; !ok && len(f.dirty) >= maxDirty {
			return
		}
		f.dirty[c.ID] = c
		if !f.writing {
			f.writing = true
			go f.writeAll()
		}
	})
}

func (f *Files) writeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.dirty) > 0 {
		for id, c := range f.dirty {
			delete(f.dirty, id)
			f.now = id
			f.mu.Unlock()
			if err := f.write(c); err != nil {
				f.log.Warn("sidecar not written; the next start repairs it", "session", id, "error", err)
			}
			f.mu.Lock()
			f.now = ""
			f.idle.Broadcast()
		}
	}
	f.writing = false
	f.idle.Broadcast()
}

func (f *Files) write(c Sidecar) error {
	b, err := c.encode()
	if err != nil {
		return err
	}
	return f.vault.WriteFileNoSync(Name(c.ID), b)
}

// Drop cancels a pending write of the session id and waits for a running one of it, and for no
// other. The database's writer may call it: writing waits for no transaction.
func (f *Files) Drop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.dirty, id)
	for f.now == id {
		f.idle.Wait()
	}
}

// Remove deletes the sidecar of id. A missing one is no error. Call Drop first.
func (f *Files) Remove(id string) error {
	if err := f.vault.Root().Remove(Name(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Repair writes c if its file is missing or differs, and reports whether it did. An id
// that is no file name (of an adopted row) has no sidecar.
func (f *Files) Repair(c Sidecar) (bool, error) {
	if !vault.ValidID(c.ID) {
		return false, nil
	}
	want, err := c.encode()
	if err != nil {
		return false, err
	}
	if have, err := f.vault.Root().ReadFile(Name(c.ID)); err == nil && bytes.Equal(have, want) {
		return false, nil
	}
	return true, f.write(c)
}

// Read returns the sidecar of id, or false if it is missing or invalid.
func (f *Files) Read(id string) (c Sidecar, ok bool) {
	file, err := f.vault.Root().Open(Name(id))
	if err != nil {
		return c, false
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSize {
		return c, false
	}
	if json.NewDecoder(file).Decode(&c) != nil || c.ID != id {
		return Sidecar{}, false
	}
	return c, true
}

// Sweep removes temporary files that a crash has left.
func (f *Files) Sweep() error {
	entries, err := fs.ReadDir(f.vault.Root().FS(), Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read sidecars: %w", err)
	}
	for _, e := range entries {
		if vault.IsTemporary(e.Name()) {
			_ = f.vault.Root().Remove(Dir + "/" + e.Name())
		}
	}
	return nil
}
