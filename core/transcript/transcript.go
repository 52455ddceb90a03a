// Package transcript reads and writes conversations: JSON lines in the vault, in the
// form that Claude Code writes. It needs no database.
package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/vault"
)

// A Session describes a conversation: who owns it, where it began and what limits it.
// Package session stores it as a row.
type Session struct {
	ID               string          `json:"id"` // a UUID
	Title            string          `json:"title"`
	Module           string          `json:"module"` // chat, daily, build
	Source           string          `json:"source"` // where it began: a platform, api, gatehouse, or an importer's name
	WorkingDirectory string          `json:"working_directory"`
	VaultRoot        string          `json:"vault_root"`             // the vault's path when the session began
	Model            string          `json:"model"`                  // that answered last
	ChosenModel      string          `json:"chosen_model,omitempty"` // that is to answer; "": no one was chosen for the session
	MessageCount     int             `json:"message_count"`          // of user and assistant
	Archived         bool            `json:"archived"`
	CreatedAt        time.Time       `json:"created_at"`
	LastAccessed     time.Time       `json:"last_accessed"`
	ContinuedFrom    string          `json:"continued_from,omitempty"`
	AgentType        string          `json:"agent_type"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`
	User             int64           `json:"user_id"`      // the owner; 0 unknown: for the operator only
	TrustLevel       core.Trust      `json:"trust_level"`  // a ceiling for every turn
	TitleSource      string          `json:"title_source"` // default, model, user
	Workspace        string          `json:"workspace,omitempty"`
	Project          string          `json:"project_id,omitempty"`
	ParaID           string          `json:"para_id,omitempty"` // "": it gets one within a minute

	// Scope is core.ScopeGroup if the session was ever held in a group, core.ScopeDM if it
	// never was, and "" where that is not known.
	Scope core.Scope `json:"-"`

	ChatModel string `json:"-"` // of the chat that the turn came from, as Resolve found it (ChatSettings)
}

// TrustAuto reports whether tools run without asking: in a chat if SetTrustAuto enabled
// it, over the API (api) unless "trust_mode" is false.
func (sess *Session) TrustAuto(api bool) bool {
	var m struct {
		Permissions struct {
			Mode *bool `json:"trust_mode"`
			Auto bool  `json:"trust_auto"`
		} `json:"permissions"`
	}
	if len(sess.Metadata) > 0 && json.Unmarshal(sess.Metadata, &m) != nil {
		return false
	}
	if api {
		return m.Permissions.Mode == nil || *m.Permissions.Mode
	}
	return m.Permissions.Auto
}

// ActivityOff reports whether the owner's log of conversations is switched off for it
// ("activity": false in its metadata).
func (sess *Session) ActivityOff() bool {
	var m struct {
		Activity *bool `json:"activity"`
	}
	return len(sess.Metadata) > 0 && json.Unmarshal(sess.Metadata, &m) == nil && m.Activity != nil && !*m.Activity
}

// What package lines has: a line, who wrote it, and pages of lines.
type (
	Message   = lines.Message
	Author    = lines.Author
	PageQuery = lines.PageQuery
	Page      = lines.Page
)

// ForModel is lines.ForModel.
func ForModel(messages []Message, model string) []Message { return lines.ForModel(messages, model) }

// Options configure New. Vault is required.
type Options struct {
	Vault   *vault.Vault
	Clock   core.Clock   // nil: the system's
	Log     *slog.Logger // nil: none
	Version string       // written into lines; "" is "gatehouse"

	// Projects is a directory such as ~/.claude/projects with transcripts of the
	// operator's sessions that are not in the vault. It is only read. "": none.
	Projects string
}

// Files are the transcripts of a vault. It is safe for concurrent use.
type Files struct {
	vault    *vault.Vault
	clock    core.Clock
	log      *slog.Logger
	version  string
	cache    *cache
	projects projects
	writers  *writers
	large    chan struct{} // one element per long read in progress; at most largeReads
}

// New returns the transcripts of a vault.
func New(o Options) *Files {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "gatehouse"
	}
	return &Files{
		vault: o.Vault, clock: o.Clock, log: o.Log, version: o.Version,
		cache: newCache(o.Clock), writers: newWriters(), projects: projects(o.Projects), large: make(chan struct{}, largeReads),
	}
}

// Uncache drops a session's messages from memory.
func (s *Files) Uncache(id string) { s.cache.drop(id) }

// Read returns the last vault.MaxTail bytes of the transcript name, and the messages in
// them, those before a compaction included.
func (s *Files) Read(name string) (vault.Tail, []Message, error) {
	t, err := s.vault.ReadTail(name, vault.MaxTail)
	if err != nil {
		return t, nil, err
	}
	m, err := lines.ReadMarks(s.vault.Root(), name, &t, vault.MaxTail)
	if err != nil {
		return t, nil, err
	}
	return t, lines.All(t, m).Messages, nil
}

// CountMessages returns the number of messages in the last vault.MaxTail bytes of the
// transcript name, without those before a compaction.
func (s *Files) CountMessages(name string) (int, error) {
	t, err := s.vault.ReadTail(name, vault.MaxTail)
	if err != nil {
		return 0, err
	}
	m, err := lines.ReadMarks(s.vault.Root(), name, &t, vault.MaxTail)
	if err != nil {
		return 0, err
	}
	return len(lines.Current(t, m).Messages), nil
}

// OneLine returns s with white space folded, and without control, format and invalid
// characters.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// Erase deletes the transcripts of a session permanently, with the files of its
// sub-agents and copies in the trash. It can be repeated. Nothing may write to the
// session concurrently.
func (s *Files) Erase(id string) error {
	if !vault.ValidID(id) {
		return nil
	}
	s.cache.drop(id)
	files, err := s.vault.FindTranscripts(id)
	if err != nil {
		return fmt.Errorf("erase session: %w", err)
	}
	root := s.vault.Root()
	for _, name := range files {
		if err := root.RemoveAll(strings.TrimSuffix(name, ".jsonl")); err != nil { // sub-agents' transcripts
			return fmt.Errorf("erase session: %w", err)
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("erase session: %w", err)
		}
	}
	if err := s.vault.RemoveTrashed(id + ".jsonl"); err != nil {
		return fmt.Errorf("erase session: %w", err)
	}
	return nil
}
