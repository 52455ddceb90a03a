package reindex

import (
	"bytes"
	"encoding/json"
	"path"
	"time"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/session/sidecar"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/vault"
)

// A finding is what the vault reports of a session.
type finding struct {
	id    string
	name  string           // of its transcript, or else of its sidecar
	side  *sidecar.Sidecar // nil: none that can be read
	count int              // messages of users and the model
	lines map[string]bool  // the uuids of its lines
	mine  bool             // the newest user line is the gateway's
	cli   bool             // Claude Code's command line began it

	formed bool // its first user line is whole, and of this session

	// From the transcript's lines, if the sidecar lacks it.
	title, model, source string
	dir                  string // inside the vault, relative; "" is the vault
	first, last          time.Time
}

// look reads the transcript name, of which the last vault.MaxTail bytes
// count; false for a file that is no session's.
func (r *reindex) look(name, id string) (finding, bool) {
	f := finding{id: id, name: name}
	t, messages, err := r.o.Sessions.Read(name)
	if err != nil {
		return f, false
	}
	own, first := false, true
	f.lines = make(map[string]bool, len(t.Lines))
	for i := range t.Lines {
		l := &t.Lines[i]
		if l.IsSidechain || l.SessionID != "" && l.SessionID != id {
			continue // a sub-agent's file, or a copy
		}
		own = true
		f.lines[l.UUID] = true
		if l.Type == "user" {
			f.mine = sourceOf(l) == Gateway
		}
		if first && l.Type == "user" {
			first = false
			f.source, f.dir = sourceOf(l), r.inside(name, l.CWD)
			f.formed = l.SessionID == id && l.UUID != "" && l.Version != "" && l.CWD != ""
			f.cli = f.formed && f.source != Gateway && l.Version != transcript.Imported
		}
		if at := lines.LineTime(l); !at.IsZero() {
			if f.first.IsZero() {
				f.first = at
			}
			f.last = at
		}
	}
	if !own {
		return f, false
	}
	if f.last.IsZero() {
		f.first, f.last = t.Info.ModTime(), t.Info.ModTime()
	}
	f.talk(messages)
	if side, ok := r.files.Read(id); ok {
		f.side = &side
	}
	return f, true
}

// The sources of sessions that transcripts name.
const (
	Gateway     = "gatehouse"
	CommandLine = "claude-code"
)

// sourceOf returns who wrote a user line: the gateway's carry the run.
func sourceOf(l *vault.Line) string {
	if l.RequestID != "" {
		return Gateway
	}
	return CommandLine
}

// inside returns the working directory that a line names, relative to the vault;
// "" where it is outside, or the vault has been elsewhere then.
func (r *reindex) inside(name, cwd string) string {
	d, err := r.o.Vault.Dir(cwd)
	if err != nil || !d.Inside || d.Rel == "." || path.Base(path.Dir(name)) != vault.ProjectFolder(d.Path) {
		return ""
	}
	return d.Rel
}

// talk takes the title, the model and the count out of the messages.
func (f *finding) talk(messages []transcript.Message) {
	for i := range messages {
		m := &messages[i]
		text := m.ShownText()
		switch {
		case m.Summary:
		case m.Role == "assistant":
			if m.Model != "" {
				f.model = m.Model
			}
			if text != "" {
				f.count++
			}
		case m.Begins():
			f.count++
			if f.title == "" && !isAside(text) {
				f.title = session.Title(text)
			}
		}
	}
}

// session returns the row that the vault reports.
func (f *finding) session(vaultRoot string) session.Session {
	sess := session.Session{
		ID: f.id, Title: f.title, Module: "chat", Source: f.source, WorkingDirectory: f.dir, VaultRoot: vaultRoot, Model: f.model,
		MessageCount: f.count, CreatedAt: f.first, LastAccessed: f.last, AgentType: "vault-agent",
		TrustLevel: core.Sandboxed, TitleSource: session.TitleDefault,
	}
	c := f.side
	if c == nil {
		return sess
	}
	sess.User, sess.Archived, sess.TrustLevel = c.User, c.Archived, max(core.Sandboxed, c.Trust)
	if c.TitleSource == session.TitleUser || c.TitleSource == session.TitleModel || c.Title != "" {
		sess.Title, sess.TitleSource = session.Title(c.Title), c.TitleSource
	}
	for _, x := range []struct {
		to   *string
		from string
	}{{&sess.Source, c.Source}, {&sess.Module, c.Module}, {&sess.AgentType, c.AgentType}} {
		if transcript.OneLine(x.from) == x.from && x.from != "" && len(x.from) <= session.MaxName {
			*x.to = x.from
		}
	}
	if c.VaultRoot != "" { // a sidecar that knows the directory: "" is the vault then
		sess.WorkingDirectory, sess.VaultRoot = c.WorkingDirectory, c.VaultRoot
	}
	var plain bytes.Buffer // the sidecar's is indented
	if json.Compact(&plain, c.Metadata) == nil && plain.Len() <= session.MaxMetadata {
		sess.Metadata = plain.Bytes()
	}
	sess.ContinuedFrom, sess.Workspace, sess.Project, sess.ChosenModel = c.ContinuedFrom, c.Workspace, c.Project, c.ChosenModel
	if at, err := core.ParseStamp(c.CreatedAt); err == nil && !at.IsZero() {
		sess.CreatedAt = at
	}
	if sess.LastAccessed.Before(sess.CreatedAt) {
		sess.LastAccessed = sess.CreatedAt
	}
	return sess
}
