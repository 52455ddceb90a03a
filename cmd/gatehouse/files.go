package main

import (
	"context"
	"io"
	"os"
	"path"

	"gatehouse/connectors"
	"gatehouse/connectors/markdown"
	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/attach/pdftext"
	"gatehouse/core/llm/transcribe"
	"gatehouse/core/orchestrator"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
	fileplace "gatehouse/core/tool/files/place"
)

// fetchFile brings a file of user's message from its platform into the vault.
func (a *app) fetchFile(ctx context.Context, user int64, bot string, f core.File) (core.File, error) {
	in, err := a.files.Begin(ctx, user, 0)
	if err != nil {
		return core.File{}, err
	}
	defer in.Drop()
	w := &keeping{w: in}
	if err := a.hub.Fetch(ctx, bot, f, w); err != nil && !attach.Refused(w.err) {
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

// keepFiles keeps what came with a message that nothing is made of.
func (a *app) keepFiles(ctx context.Context, in *core.Inbound) {
	for _, f := range in.Files {
		if f.Ref == "" {
			continue
		}
		user, err := a.sender(ctx, in.From)
		if err == nil {
			_, err = a.fetchFile(ctx, user, in.Bot, f)
		}
		if err != nil {
			a.log.WarnContext(ctx, "a file could not be kept", "bot", in.Bot, "err", err)
		}
	}
}

// sender returns who a peer is, 0 for no one that is known.
func (a *app) sender(ctx context.Context, from core.Peer) (int64, error) {
	user, _, err := a.pairing.People.User(ctx, a.db, from)
	return user, err
}

// Bounds of what an answer shows.
const (
	maxShown     = 5        // files of one answer
	maxShownFile = 50 << 20 // bytes of one; platforms may take less
)

// showing copies the files that an answer shows into the attachments, where no
// tool changes them before they are sent. What the sender may not read is treated as
// missing.
func (a *app) showing() func(context.Context, *orchestrator.Turn, string) ([]core.Part, []string) {
	reader := markdown.New(markdown.MaxSource)
	return func(ctx context.Context, t *orchestrator.Turn, answer string) (parts []core.Part, notes []string) {
		for _, p := range reader.Pictures(answer, maxShown) {
			f, err := a.copyShown(ctx, t, p.Path)
			if err != nil {
				why := texts.Text("not_there")
				if core.KindOf(err) == core.TooLarge || core.KindOf(err) == core.Invalid {
					why = core.TextOf(err)
				}
				notes = append(notes, connectors.NotSent(path.Base(p.Path), why))
				continue
			}
			parts = append(parts, core.Part{Text: core.CutRunes(p.Alt, 200), File: &f})
		}
		return parts, notes
	}
}

func (a *app) copyShown(ctx context.Context, t *orchestrator.Turn, name string) (core.File, error) {
	dir, err := a.vault.Dir(".")
	if err != nil {
		return core.File{}, err
	}
	mayRead := func(name string) bool { return a.mayRead(t.Trust, t.User, name) }
	turn := &tool.Turn{User: t.User, Trust: min(t.Trust, core.Vault), Vault: a.vault, Dir: dir, MayRead: mayRead}
	real, err := turn.Name(name)
	if err != nil {
		return core.File{}, err
	}
	p, err := fileplace.At(turn, real)
	if err != nil {
		return core.File{}, err
	}
	defer p.Close()
	if !mayRead(p.Name(turn)) {
		return core.File{}, texts.Error(core.NotFound, "not_there")
	}
	f, st, err := fileplace.Opener{}.Open(p, 0)
	if err != nil {
		return core.File{}, err
	}
	defer f.Close()
	if st.IsDir() {
		return core.File{}, texts.Error(core.Invalid, "is_folder")
	}
	kept, err := a.files.Save(ctx, t.User, path.Base(real), "", maxShownFile, f)
	if err != nil {
		return core.File{}, err
	}
	err = a.db.Tx(ctx, func(tx *store.Tx) error {
		return attach.Record(ctx, tx, t.User, t.Session.ID, t.Run, []core.File{kept})
	})
	if err != nil {
		a.files.Remove([]core.File{kept})
	}
	return kept, err
}

// pdfs has the text of PDFs taken out in processes of our own program.
func pdfs() (func(context.Context, []byte) (string, int, int, error), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := pdftext.New(self)
	return func(ctx context.Context, data []byte) (string, int, int, error) {
		t, err := r.Text(ctx, data)
		return t.Text, t.Read, t.Pages, err
	}, nil
}

// hearing has voice messages written down, where a server for it is
// configured. It gets the OpenAI key only where it is the same server.
func (a *app) hearing() (func(context.Context, core.File) (string, error), error) {
	if a.cfg.TranscribeURL == "" {
		return nil, nil
	}
	key := ""
	if a.cfg.SameServer(a.cfg.TranscribeURL) {
		key = a.cfg.OpenaiAPIKey.Reveal()
	}
	c, err := transcribe.New(a.cfg.TranscribeURL, key)
	if err != nil {
		return nil, err
	}
	a.closing(c.Close)
	return func(ctx context.Context, f core.File) (string, error) {
		r, err := a.vault.OpenNoLinks(f.Path)
		if err != nil {
			return "", err
		}
		defer r.Close()
		return c.Text(ctx, f.Name, r)
	}, nil
}
