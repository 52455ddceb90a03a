// Package attachments copies files between chats and the vault: those that come
// with messages, and those that answers show.
package attachments

import (
	"context"
	"io"
	"log/slog"

	"gatehouse/core"
	"gatehouse/core/attach"
)

// A Platform downloads files of messages.
type Platform interface {
	Fetch(ctx context.Context, bot string, f core.File, to io.Writer) error
}

// Incoming stores what comes with messages in the vault.
type Incoming struct {
	files  *attach.Keeper
	from   Platform
	sender func(ctx context.Context, from core.Peer) (int64, error)
	log    *slog.Logger
}

// NewIncoming returns the way from the platform to the files. sender returns the
// user of an account, or 0 for a stranger's.
func NewIncoming(files *attach.Keeper, from Platform, sender func(ctx context.Context, from core.Peer) (int64, error), log *slog.Logger) *Incoming {
	return &Incoming{files, from, sender, log}
}

// Fetch stores a file of the user's message in the vault, once for a run: a later attempt
// gets what an earlier one has stored. Without a run each call stores a file.
func (i *Incoming) Fetch(ctx context.Context, user int64, run, bot string, f core.File) (core.File, error) {
	tag := ""
	if run != "" {
		tag = attach.Tag(run, f.Ref)
		kept, found, err := i.files.Kept(ctx, user, tag)
		if kept.Name = f.Name; found || err != nil {
			return kept, err
		}
	}
	in, err := i.files.Begin(ctx, user, 0)
	if err != nil {
		return core.File{}, err
	}
	defer in.Drop()
	in.Tag = tag
	w := &keeping{w: in}
	if err := i.from.Fetch(ctx, bot, f, w); err != nil && !attach.Refused(w.err) {
		return core.File{}, err
	}
	return in.Keep(f.Name, f.Type)
}

// keeping records why the vault took no more, which the connector's error may not
// contain.
type keeping struct {
	w   io.Writer
	err error
}

func (k *keeping) Write(p []byte) (n int, err error) {
	n, err = k.w.Write(p)
	if err != nil {
		k.err = err
	}
	return n, err
}

// Keep stores the files of a message that no turn is made of.
func (i *Incoming) Keep(ctx context.Context, in *core.Inbound) {
	for _, f := range in.Files {
		if f.Ref == "" {
			continue
		}
		user, err := i.sender(ctx, in.From)
		if err == nil {
			_, err = i.Fetch(ctx, user, "", in.Bot, f)
		}
		if err != nil {
			i.log.WarnContext(ctx, "a file could not be kept", "bot", in.Bot, "err", err)
		}
	}
}
