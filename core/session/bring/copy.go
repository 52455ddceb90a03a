package bring

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strings"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/session"
	"gatehouse/core/session/reindex"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// maxCopy is the largest transcript that is copied, in bytes.
const maxCopy = 256 << 20

// Copy brings in a conversation that has Claude Code's form already: its transcript is copied
// as it is, into the vault's own directory, so that the gateway and Claude Code go on with it. One
// that was copied before is replaced where the original has grown and the copy has not. Only the
// operator copies: Claude Code finds a transcript by its id.
func (b *Bringer) Copy(ctx context.Context, c foreign.Transcript, t foreign.Terms) (out foreign.Outcome, err error) {
	if t.User != core.Operator {
		return out, core.Errorf(core.Denied, "only the owner imports transcripts of Claude Code")
	}
	if c.Others {
		t.Trust = min(t.Trust, core.Sandboxed)
	}
	if !vault.ValidID(c.ID) {
		return out, core.Errorf(core.Invalid, "the session id is not valid")
	}
	k, err := b.byID(ctx, t.User, c.ID)
	if err != nil {
		return out, err
	}
	out.Session, out.Title = c.ID, titleOf(c.Others, c.ID, c.Title)
	if k.deleted && !t.Again {
		out.Kind = foreign.Deleted
		return out, nil
	}
	blank := k.blank(c.Source, b.o.Vault.Path())
	if k.row == nil && !t.DryRun {
		blank.MessageCount = 1 // have it looked for in every directory of the vault
	}
	conv, err := b.o.Sessions.Files.Open(blank)
	if err != nil {
		return out, err
	}
	defer conv.Close()
	differs, err := b.differs(conv, c)
	if err != nil {
		return out, err
	}
	switch {
	case !conv.Exists() && k.marked: // its file was lost
		out.Kind = foreign.Updated
	case !conv.Exists():
		out.Kind = foreign.Added
	case differs == longer:
		out.Kind = foreign.Updated
	case differs == parted, differs == shorter && k.marked:
		out.Kind = foreign.Continued
		return out, nil
	case k.marked:
		out.Kind = foreign.Unchanged
		return out, nil
	default: // the file is there; its row is not, or is of one who picked it up
		out.Kind = foreign.Added
	}
	if k.row != nil && !k.marked && !b.pickedUp(&k, conv) {
		out.Kind = foreign.Continued
		return out, nil
	}
	if err := mayChange(&k, t); err != nil || t.DryRun {
		return out, err
	}
	return out, b.copy(ctx, &k, conv, c, differs, t, &out)
}

// pickedUp reports whether the session of k is Claude Code's own, which the gateway has taken in:
// one that a chat or a client began here keeps its source and its trust.
func (b *Bringer) pickedUp(k *known, conv *transcript.Conversation) bool {
	if k.row.Scope == core.ScopeGroup {
		return false
	}
	switch k.row.Source {
	case reindex.CommandLine, core.APIBot, "parachute", "claude", "chatgpt":
	default:
		return false
	}
	_, begun := reindex.Find(b.o.Sessions, b.o.Vault, b.o.Log, conv.Name(), k.id, true)
	return begun
}

// OthersTag is the tag of a conversation of another vault that was not its owner's alone.
const OthersTag = "from-others"

// ofOthers begins the title of such a conversation, which lists, searches and the tools of
// agents show: what others wrote must not pass for the owner's own text.
const ofOthers = "From others: "

// titleOf returns the title of the session of a conversation, of which others may have been.
func titleOf(others bool, id, title string) string {
	if others {
		return session.Title(ofOthers + cmp.Or(strings.TrimPrefix(title, ofOthers), id))
	}
	return session.Title(title)
}

// tagsOf returns the tags of such a session.
func tagsOf(others bool, tags []string) []string {
	if others {
		return append([]string{OthersTag}, tags...)
	}
	return tags
}

// copy writes the file to its place, where it is not, and writes the row.
func (b *Bringer) copy(ctx context.Context, k *known, conv *transcript.Conversation, c foreign.Transcript, d difference, t foreign.Terms, out *foreign.Outcome) error {
	made := !conv.Exists()
	digest := ""
	if made || d == longer {
		draft, sum, err := b.fetch(ctx, conv, c)
		if err != nil {
			return err
		}
		defer draft.Drop()
		err = b.o.Sessions.Replace(conv.Name(), func() error {
			if again, err := b.differs(conv, c); err != nil || again != d && !made {
				return errors.Join(err, core.Errorf(core.Conflict, "the conversation is being continued: import it again later"))
			}
			return draft.Keep(conv.Name())
		})
		if err != nil {
			return err
		}
		digest = sum
	}
	sess, begun, err := b.describe(k, conv, c, digest, t)
	if err == nil {
		if !begun { // what a gateway held gets no more trust here than it had there
			t.Trust = min(t.Trust, cmp.Or(c.Trust, mostOfExports), mostOfExports)
		}
		out.Title, out.Messages = sess.Title, sess.MessageCount
		err = b.store(context.WithoutCancel(ctx), k, sess, tagsOf(c.Others, c.Tags), c.Others, t) // the file is there: a stop comes behind it
	}
	if err != nil && made {
		_ = b.o.Vault.Remove(conv.Name()) // the next import replaces it otherwise
	}
	b.o.Sessions.Uncache(c.ID)
	return err
}

// fetch copies the original into a file without a name.
func (b *Bringer) fetch(ctx context.Context, conv *transcript.Conversation, c foreign.Transcript) (*vault.Draft, string, error) {
	in, err := c.Open()
	if err != nil {
		return nil, "", err
	}
	defer in.Close()
	draft, err := b.o.Vault.Draft(folder(conv))
	if err != nil {
		return nil, "", err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(draft, h), io.LimitReader(reader{ctx, in}, maxCopy+1))
	if err == nil && n > maxCopy {
		err = core.Errorf(core.TooLarge, "the transcript is larger than %s", core.ByteSize(maxCopy))
	}
	if err == nil {
		err = draft.Sync()
	}
	if err != nil {
		draft.Drop()
		return nil, "", err
	}
	return draft, hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// reader ends with ctx.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// describe returns the row of a copied transcript, and whether Claude Code began the conversation: a
// vault of another gateway also has those that the gateway held or imported.
func (b *Bringer) describe(k *known, conv *transcript.Conversation, c foreign.Transcript, digest string, t foreign.Terms) (sess session.Session, begun bool, err error) {
	found, begun, ok := reindex.Describe(b.o.Sessions, b.o.Vault, b.o.Log, conv.Name(), c.ID)
	if !ok && k.row == nil {
		return found, false, core.Errorf(core.Invalid, "it holds no messages of a conversation")
	}
	if c.Source == reindex.CommandLine && ok && !begun {
		c.Source = reindex.Gateway
	}
	sess = k.blank(c.Source, b.o.Vault.Path())
	if ok {
		sess.Title, sess.TitleSource, sess.Model, sess.MessageCount = found.Title, found.TitleSource, found.Model, found.MessageCount
		sess.LastAccessed = found.LastAccessed
	}
	if k.row == nil {
		sess.CreatedAt, sess.Archived, sess.ContinuedFrom = first(c.Created, found.CreatedAt), c.Archived, c.From
	}
	if c.Title != "" {
		sess.Title, sess.TitleSource = session.Title(c.Title), session.TitleModel
	}
	if c.Others {
		sess.Title, sess.TitleSource = titleOf(true, c.ID, sess.Title), session.TitleModel
	}
	sess.LastAccessed = first(c.Updated, sess.LastAccessed, sess.CreatedAt)
	sess.Source = c.Source
	sess.Metadata, err = metadata(sess.Metadata, cmp.Or(c.Original, c.ID), mark{core.Stamp(b.o.Clock.Now()), cmp.Or(digest, k.mark.Digest), t.Found})
	return sess, begun, err
}

// A difference is what the original has that the copy has not.
type difference int

const (
	same    difference = iota
	longer             // the original goes on
	shorter            // the copy goes on
	parted
)

// differs compares the original with the copy. A copy that is not there has parted.
func (b *Bringer) differs(conv *transcript.Conversation, c foreign.Transcript) (difference, error) {
	ours, err := b.o.Vault.Root().Open(conv.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return parted, nil
	}
	if err != nil {
		return parted, err
	}
	defer ours.Close()
	theirs, err := c.Open()
	if err != nil {
		return parted, err
	}
	defer theirs.Close()
	x, y := bufio.NewReaderSize(ours, 64<<10), bufio.NewReaderSize(theirs, 64<<10)
	for {
		p, errX := x.Peek(32 << 10)
		q, errY := y.Peek(32 << 10)
		if errX != nil && !errors.Is(errX, io.EOF) || errY != nil && !errors.Is(errY, io.EOF) {
			return parted, errors.Join(errX, errY)
		}
		n := min(len(p), len(q))
		switch {
		case !bytes.Equal(p[:n], q[:n]):
			return parted, nil
		case n == 0 && len(p) > 0:
			return shorter, nil
		case n == 0 && len(q) > 0:
			return longer, nil
		case n == 0:
			return same, nil
		}
		_, _ = x.Discard(n)
		_, _ = y.Discard(n)
	}
}
