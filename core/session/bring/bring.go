// Package bring makes sessions of conversations of other systems. Each is one file that gets
// its name when it is whole, and one transaction: a process that is killed leaves either
// nothing or a file that the next import of the same conversation replaces.
package bring

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"time"

	"errors"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// Tag is the tag of every imported session.
const Tag = "imported"

// Options for New. All are needed.
type Options struct {
	DB       *store.DB
	Vault    *vault.Vault
	Sessions *session.Store
	Clock    core.Clock
	Log      *slog.Logger
}

// A Bringer brings conversations in. Its methods may be called for different conversations at
// the same time, for one conversation one after the other.
type Bringer struct{ o Options }

// New returns a Bringer.
func New(o Options) *Bringer { return &Bringer{o} }

// space makes the ids of sessions; fixed for ever.
var space = uuid.NewSHA1(uuid.NameSpaceURL, []byte("gatehouse:import"))

// idOf returns the id of the session that user gets of a conversation: the operator's keep
// the id that they had in the vault's own formats, because clients and Claude Code ask for it.
func idOf(user int64, source, original string) string {
	if u, err := uuid.Parse(original); err == nil && u.String() == original && user == core.Operator && source != "claude" && source != "chatgpt" {
		return original
	}
	return uuid.NewSHA1(space, fmt.Appendf(nil, "%d %s %s", user, source, original)).String()
}

// mark is the member "import" of the metadata of a session.
type mark struct {
	At     string `json:"at"`
	Digest string `json:"digest"`          // of the conversation as it was
	Found  bool   `json:"found,omitempty"` // no one asked for it (foreign.Terms)
}

// metadata returns what was, with the original id and the mark.
func metadata(was json.RawMessage, original string, m mark) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if len(was) > 0 && json.Unmarshal(was, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	for name, v := range map[string]any{"original_id": original, "import": m} {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
		all[name] = b
	}
	return json.Marshal(all)
}

// markOf returns the mark of a session; false for one that was not imported by this package.
func markOf(s *session.Session) (m mark, ok bool) {
	var all struct {
		Import *mark `json:"import"`
	}
	if json.Unmarshal(s.Metadata, &all) != nil || all.Import == nil {
		return m, false
	}
	return *all.Import, true
}

// A known is what there is of a conversation.
type known struct {
	id      string
	row     *session.Session // nil: no session
	marked  bool             // row was imported by this package
	mark    mark
	deleted bool
}

// find returns what there is of a conversation of user's.
func (b *Bringer) find(ctx context.Context, user int64, source, original string) (known, error) {
	row, err := b.o.Sessions.Original(ctx, b.o.DB, user, source, original)
	if core.KindOf(err) == core.NotFound {
		k, err := b.byID(ctx, user, idOf(user, source, original))
		if err == nil && k.row == nil && !k.deleted {
			k.deleted, err = b.o.Sessions.DeletedOriginal(ctx, b.o.DB, user, source, original)
		}
		return k, err
	}
	return b.knownAs(ctx, user, row, err)
}

// byID returns what there is of the session id.
func (b *Bringer) byID(ctx context.Context, user int64, id string) (known, error) {
	row, err := b.o.Sessions.ByID(ctx, b.o.DB, id)
	row.ID = id
	return b.knownAs(ctx, user, row, err)
}

func (b *Bringer) knownAs(ctx context.Context, user int64, row session.Session, err error) (known, error) {
	k := known{id: row.ID}
	switch {
	case core.KindOf(err) == core.NotFound:
		at, err := b.o.Sessions.DeletedAt(ctx, b.o.DB, k.id)
		k.deleted = !at.IsZero()
		return k, err
	case err != nil:
		return k, err
	case row.User != user:
		return k, core.Errorf(core.Conflict, "another user has a session with this id")
	}
	k.row = &row
	k.mark, k.marked = markOf(&row)
	return k, nil
}

// maxID is the longest id of a conversation where it comes from, in bytes: rows and their
// index hold it.
const maxID = 200

// mostOfExports is the highest ceiling of a conversation that another system exported: nothing
// in it was done at trust full here, and one with that ceiling could not be continued in a chat.
const mostOfExports = core.Vault

// mayChange returns an error where the session of k has more trust than the import: who goes on
// with it would give what the import wrote that trust.
func mayChange(k *known, t foreign.Terms) error {
	if k.row != nil && k.row.TrustLevel > t.Trust {
		return core.Errorf(core.Denied, "its session has the trust %s, and this import %s: import it as the owner at that trust", k.row.TrustLevel, t.Trust)
	}
	return nil
}

// blank is the session of k, or a new one.
func (k *known) blank(source, root string) session.Session {
	if k.row != nil {
		return *k.row
	}
	return session.Session{ID: k.id, Module: "chat", Source: source, VaultRoot: root, AgentType: "vault-agent"}
}

// store writes the row of sess, as a group's where others wrote in it. The file is in its place
// already.
func (b *Bringer) store(ctx context.Context, k *known, sess session.Session, tags []string, others bool, t foreign.Terms) error {
	if !k.marked || k.mark.Found && !t.Found { // else who lowered it here has decided
		sess.TrustLevel = t.Trust
	}
	sess.User = t.User
	return b.o.DB.Tx(ctx, func(tx *store.Tx) error {
		now, err := b.o.Sessions.ByID(ctx, tx, sess.ID)
		switch {
		case core.KindOf(err) == core.NotFound && k.row == nil:
			sess.Archived = sess.Archived || t.Archive
			if others {
				sess.Scope = core.ScopeGroup
			}
			return b.o.Sessions.Take(ctx, tx, sess, append([]string{Tag}, tags...)...)
		case err != nil:
			return err
		case now.User != t.User:
			return core.Errorf(core.Conflict, "another user has a session with this id")
		}
		return b.o.Sessions.Retake(ctx, tx, sess, append([]string{Tag}, tags...)...)
	})
}

// Tree imports a conversation. That of a group, or of another user than the operator who
// imports it, counts as one of several people: its trust is core.Sandboxed at most. With t.DryRun it writes nothing and reports what it would do.
// An error concerns this conversation alone, unless ctx has ended.
func (b *Bringer) Tree(ctx context.Context, c *foreign.Conversation, t foreign.Terms, files foreign.Attachments) (foreign.Outcome, error) {
	others := c.Others || t.User == core.Operator && c.User > core.Operator
	if others {
		t.Trust = min(t.Trust, core.Sandboxed)
	}
	out := foreign.Outcome{Title: titleOf(others && c.Title != "", c.ID, c.Title)}
	k, err := b.find(ctx, t.User, c.Source, c.ID)
	if err != nil {
		return out, err
	}
	if len(c.ID) > maxID {
		return out, core.Errorf(core.Invalid, "its id is longer than %d bytes", maxID)
	}
	out.Session = k.id
	digest, err := digestOf(c)
	if err != nil {
		return out, err
	}
	conv, err := b.o.Sessions.Files.Open(k.blank(c.Source, b.o.Vault.Path()))
	if err != nil {
		return out, err
	}
	defer conv.Close()
	if out.Kind, err = b.decide(&k, conv, digest, t); err != nil || out.Kind != foreign.Added && out.Kind != foreign.Updated {
		return out, err
	}
	if err := mayChange(&k, t); err != nil {
		return out, err
	}
	w := &writer{b: b, conv: conv, session: k.id, files: files, ids: map[string]string{}, used: map[string]bool{}, dry: t.DryRun}
	if err := w.write(ctx, c); err != nil {
		w.drop()
		return out, err
	}
	defer w.drop()
	out.Messages, out.Notes = w.count, w.notes
	if out.Title == "" {
		out.Title = titleOf(others, c.ID, w.title)
	}
	if w.count == 0 {
		return out, core.Errorf(core.Invalid, "the conversation has no messages")
	}
	if t.DryRun {
		return out, nil
	}
	sess := k.blank(c.Source, b.o.Vault.Path())
	sess.Title, sess.TitleSource, sess.Model, sess.MessageCount = out.Title, session.TitleModel, w.model, w.count
	if c.Title == "" {
		sess.TitleSource = session.TitleDefault
	}
	if k.row == nil {
		sess.CreatedAt, sess.Archived = first(c.Created, w.firstAt, b.o.Clock.Now()), c.Archived
	}
	sess.LastAccessed = first(c.Updated, w.lastAt, sess.CreatedAt)
	if sess.LastAccessed.Before(sess.CreatedAt) {
		sess.LastAccessed = sess.CreatedAt
	}
	if sess.Metadata, err = metadata(sess.Metadata, c.ID, mark{core.Stamp(b.o.Clock.Now()), digest, t.Found}); err != nil {
		return out, err
	}
	t.Trust = min(t.Trust, mostOfExports)
	return out, b.finish(ctx, &k, conv, w.draft, sess, others, t)
}

// decide returns what is to become of a conversation whose transcript is conv.
func (b *Bringer) decide(k *known, conv *transcript.Conversation, digest string, t foreign.Terms) (string, error) {
	if k.deleted && !t.Again {
		return foreign.Deleted, nil
	}
	if !conv.Exists() {
		return foreign.Added, nil
	}
	continued, err := b.o.Sessions.Continued(conv.Name())
	switch {
	case err != nil:
		return "", err
	case continued:
		return foreign.Continued, nil
	case k.row == nil: // an import ended between file and row
		return foreign.Added, nil
	case k.marked && k.mark.Digest == digest && (t.Found || !k.mark.Found):
		return foreign.Unchanged, nil
	}
	return foreign.Updated, nil
}

// finish gives the file its name and writes the row. A new file goes where the row cannot be written.
func (b *Bringer) finish(ctx context.Context, k *known, conv *transcript.Conversation, draft *vault.Draft, sess session.Session, others bool, t foreign.Terms) error {
	err := b.o.Sessions.Replace(conv.Name(), func() error {
		if continued, err := b.o.Sessions.Continued(conv.Name()); err != nil || continued {
			return errors.Join(err, core.Errorf(core.Conflict, "the conversation is being continued: import it again later"))
		}
		return draft.Keep(conv.Name())
	})
	if err != nil {
		return err
	}
	err = b.store(context.WithoutCancel(ctx), k, sess, tagsOf(others, nil), others, t) // the file is there: a stop comes behind it
	if err != nil && !conv.Exists() {
		_ = b.o.Vault.Remove(conv.Name()) // the next import replaces it otherwise
	}
	b.o.Sessions.Uncache(sess.ID)
	return err
}

// first returns the first time that is set.
func first(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t.UTC()
		}
	}
	return time.Time{}
}

// form is what a digest begins with; another one has every conversation written again.
const form = "1"

// digestOf returns a hash of everything of c that is written.
func digestOf(c *foreign.Conversation) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	err := enc.Encode([]any{form, c.ID, c.Title, c.Model, c.Leaf, c.Created})
	for i := 0; err == nil && i < len(c.Messages); i++ {
		err = enc.Encode(c.Messages[i])
	}
	if err != nil {
		return "", fmt.Errorf("digest of a conversation: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// earlier finds the lines of an imported transcript by their ids, so that the files of a
// message are not kept twice.
type earlier struct {
	b    *Bringer
	name string
	at   map[string][2]int64 // place and length of lines by uuid; nil until it is needed
}

// line returns the message of the line id as it was written before; nil without one.
func (e *earlier) line(id string) (json.RawMessage, error) {
	if e.at == nil {
		if err := e.scan(); err != nil {
			return nil, err
		}
	}
	place, ok := e.at[id]
	if !ok {
		return nil, nil
	}
	f, err := e.b.o.Vault.Root().Open(e.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := make([]byte, place[1])
	if _, err := f.ReadAt(raw, place[0]); err != nil {
		return nil, err
	}
	var l vault.Line
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, err
	}
	return l.Message, nil
}

func (e *earlier) scan() error {
	e.at = map[string][2]int64{}
	f, err := e.b.o.Vault.Root().Open(e.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return eachLine(f, func(at int64, raw []byte) {
		var l struct {
			UUID string `json:"uuid"`
		}
		if bytes.Contains(raw, []byte(assets)) && json.Unmarshal(raw, &l) == nil {
			e.at[l.UUID] = [2]int64{at, int64(len(raw))}
		}
	})
}

// folder returns the directory of a transcript.
func folder(conv *transcript.Conversation) string {
	return path.Dir(strings.TrimPrefix(conv.Name(), "/"))
}
