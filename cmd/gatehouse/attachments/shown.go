package attachments

import (
	"context"
	"path"

	"gatehouse/connectors"
	"gatehouse/connectors/markdown"
	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/orchestrator"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
	fileplace "gatehouse/core/tool/files/place"
	"gatehouse/core/vault"
)

// Bounds of what an answer shows.
const (
	maxShown     = 5        // files of one answer
	maxShownFile = 50 << 20 // bytes of one; platforms may take less
)

// Options of NewShown. All are needed.
type Options struct {
	DB    *store.DB
	Vault *vault.Vault
	Files *attach.Keeper
	// MayRead reports whether a user may read the vault's file at this trust.
	MayRead func(trust core.Trust, user int64, path string) bool
}

// Shown copies files that are sent to chats.
type Shown struct {
	o      Options
	reader *markdown.Renderer
}

// NewShown returns a Shown.
func NewShown(o Options) *Shown { return &Shown{o, markdown.New(markdown.MaxSource)} }

// Parts returns copies of the files that the answer shows among the attachments,
// where no tool changes them before they are sent, and a note for each that is
// not sent. A file that the sender may not read is treated as missing.
func (s *Shown) Parts(ctx context.Context, t *orchestrator.Turn, answer string) (parts []core.Part, notes []string) {
	for _, p := range s.reader.Pictures(answer, maxShown) {
		f, err := s.Copy(ctx, t, p.Path)
		if at := path.Join(t.Dir.Rel, p.Path); err != nil && t.Dir.Inside && at != p.Path { // as the tools name it
			if again, other := s.Copy(ctx, t, at); other == nil {
				f, err = again, nil
			}
		}
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

// Copy returns a copy of the vault's file of this name among the attachments, if
// the turn's user may read it at the turn's trust.
func (s *Shown) Copy(ctx context.Context, t *orchestrator.Turn, name string) (core.File, error) {
	dir, err := s.o.Vault.Dir(".")
	if err != nil {
		return core.File{}, err
	}
	mayRead := func(name string) bool { return s.o.MayRead(t.Trust, t.User, name) }
	turn := &tool.Turn{User: t.User, Trust: min(t.Trust, core.Vault), Vault: s.o.Vault, Dir: dir, MayRead: mayRead}
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
	kept, err := s.o.Files.Save(ctx, t.User, path.Base(real), "", maxShownFile, f)
	if err != nil {
		return core.File{}, err
	}
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		return attach.Record(ctx, tx, t.User, t.Session.ID, t.Run, []core.File{kept})
	})
	if err != nil {
		s.o.Files.Remove([]core.File{kept})
	}
	return kept, err
}
