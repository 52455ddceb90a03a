package attach

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// book is a ledger with room for so much of everybody.
type book struct {
	room  int64
	noted map[string]int64 // path → user
	err   error
}

func (b *book) Room(context.Context, int64) (int64, string, error) {
	return b.room, "all files here may take 1 GB", b.err
}

func (b *book) Note(_ context.Context, user int64, f core.File) (bool, error) {
	if b.err != nil || f.Size > b.room {
		return false, b.err
	}
	b.noted[f.Path], b.room = user, b.room-f.Size
	return true, nil
}

func (b *book) Find(context.Context, int64, string) (core.File, bool, error) {
	return core.File{}, false, nil
}

func (b *book) Drop(_ context.Context, files []core.File) error {
	for _, f := range files {
		delete(b.noted, f.Path)
		b.room += f.Size
	}
	return nil
}

func TestFilesAreKeptWhileThereIsRoomAndNotedAsTheirSenders(t *testing.T) {
	_, v := keeper(t)
	b := &book{room: 10, noted: map[string]int64{}}
	k := New(v, nil, b)
	save := func(words string) (core.File, error) {
		return k.Save(t.Context(), 7, "a.txt", "", 0, strings.NewReader(words))
	}
	first, err := save("sixsix")
	if err != nil || b.noted[first.Path] != 7 {
		t.Fatal(first, err, b.noted)
	}
	for words, says := range map[string]string{"fives": "a.txt does not fit any more: all files here may take 1 GB, and 4 bytes are left", "\x7fELF": "programs are not taken"} {
		_, err := save(words)
		_, isFull := errors.AsType[*Full](err)
		if !strings.Contains(core.TextOf(err), says) || isFull != strings.Contains(says, "fit") || isFull && core.KindOf(err) != core.TooLarge {
			t.Errorf("%q: %v", words, err)
		}
	}
	if _, err := save("four"); err != nil {
		t.Error(err)
	}
	if _, err := save("1"); core.TextOf(err) != "there is no more room for files: all files here may take 1 GB" {
		t.Error(err)
	}
	k.Remove([]core.File{first, {}})
	if f, err := save("sixsix"); err != nil || len(b.noted) != 2 || len(all(t, v)) != 2 || f.Path == first.Path {
		t.Errorf("%v %v %v", err, b.noted, all(t, v))
	}
}

// A file that cannot be noted as somebody's would be nobody's: it is not kept.
func TestAFileThatCannotBeNotedIsNotKept(t *testing.T) {
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	b := &book{room: math.MaxInt64}
	in, err := New(v, nil, b).Begin(t.Context(), 7, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = in.Write([]byte("words"))
	b.err = errors.New("no database")
	if _, err := in.Keep("a.txt", ""); !errors.Is(err, b.err) || len(all(t, v)) != 0 {
		t.Errorf("%v, left %v", err, all(t, v))
	}
}
