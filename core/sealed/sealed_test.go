package sealed_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/sealed"
)

func newBox(t testing.TB) (*sealed.Box, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys", "content.key")
	box, err := sealed.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	return box, path
}

var place = sealed.Place{Table: "notes", Column: "text", Row: "7"}

func TestASealedTextOpensAtItsPlaceOnly(t *testing.T) {
	box, _ := newBox(t)
	value, err := box.Seal(place, "I prefer tabs")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(value, "tabs") || !strings.HasPrefix(value, "s1."+box.ID()+".") {
		t.Errorf("the value is %q", value)
	}
	if text, err := box.Open(place, value); err != nil || text != "I prefer tabs" {
		t.Errorf("opened %q, %v", text, err)
	}
	for name, other := range map[string]sealed.Place{
		"another row":    {"notes", "text", "8"},
		"another column": {"notes", "title", "7"},
		"another table":  {"drafts", "text", "7"},
	} {
		if text, err := box.Open(other, value); !errors.Is(err, sealed.ErrDamaged) {
			t.Errorf("at %s it opens: %q, %v", name, text, err)
		}
	}
	for i := range value {
		changed := value[:i] + string(value[i]^1) + value[i+1:]
		if text, err := box.Open(place, changed); err == nil {
			t.Errorf("with byte %d changed it opens as %q", i, text)
		}
	}
}

func TestOneTextIsSealedDifferentlyEachTime(t *testing.T) {
	box, _ := newBox(t)
	a, _ := box.Seal(place, "same")
	b, _ := box.Seal(place, "same")
	if a == b {
		t.Error("equal texts have equal ciphertexts")
	}
}

func TestAPlaceWithoutTableColumnOrRowIsRefused(t *testing.T) {
	box, _ := newBox(t)
	for _, bad := range []sealed.Place{{}, {"notes", "text", ""}, {"notes", "", "7"}, {"", "text", "7"}, {"no|tes", "text", "7"}} {
		if _, err := box.Seal(bad, "text"); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestPlainTextIsNotTakenForEncrypted(t *testing.T) {
	box, _ := newBox(t)
	for _, plain := range []string{"hello", "s1.", "s1.hello.world", "s1.0123456.abc", "s2." + box.ID() + ".abc"} {
		if _, err := box.Open(place, plain); !errors.Is(err, sealed.ErrNotSealed) {
			t.Errorf("%q: %v", plain, err)
		}
	}
}

func TestAMissingKeyIsNamedWithTheFix(t *testing.T) {
	box, _ := newBox(t)
	other, path := newBox(t)
	value, _ := box.Seal(place, "text")
	_, err := other.Open(place, value)
	if core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), box.ID()) || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
}

func TestAnyTextSealsAndOpens(t *testing.T) {
	box, _ := newBox(t)
	rapid.Check(t, func(t *rapid.T) {
		text, row := rapid.String().Draw(t, "text"), rapid.StringN(1, 50, -1).Draw(t, "row")
		at := sealed.Place{Table: "t", Column: "c", Row: row}
		value, err := box.Seal(at, text)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := box.Open(at, value); err != nil || back != text {
			t.Fatalf("%q came back as %q, %v", text, back, err)
		}
	})
}

func FuzzOpenNeverPanicsAndOpensNothingForeign(f *testing.F) {
	box, _ := newBox(f)
	value, _ := box.Seal(place, "text")
	f.Add(value)
	f.Add("s1.00000000.AAAA")
	f.Add("")
	f.Fuzz(func(t *testing.T, in string) {
		if text, err := box.Open(place, in); err == nil && in != "" && in != value {
			t.Errorf("%q opens as %q", in, text)
		}
	})
}

func TestTheKeyFileHasMode0600AndItsDirectory0700(t *testing.T) {
	_, path := newBox(t)
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if _, err := sealed.Create(path); core.KindOf(err) != core.Conflict {
		t.Errorf("a second file in its place: %v", err)
	}
}

func TestAKeyFileThatOthersCanReadIsRefused(t *testing.T) {
	_, path := newBox(t)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := sealed.Open(path); core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestADamagedKeyFileIsRefusedWithoutShowingAKey(t *testing.T) {
	_, path := newBox(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(b[strings.LastIndex(strings.TrimSpace(string(b)), "\n")+1:]))
	id, key, _ := strings.Cut(line, " ")
	for name, text := range map[string]string{
		"empty":          "",
		"comments":       "# nothing\n",
		"one word":       id + "\n",
		"short key":      id + " " + key[:20] + "\n",
		"no base64":      id + " " + strings.Repeat("!", 44) + "\n",
		"id of another":  "00000000 " + key + "\n",
		"key twice":      key + " " + key + "\n",
		"changed key":    id + " " + "AAAA" + key[4:] + "\n",
		"much too large": strings.Repeat(line+"\n", 1000),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := sealed.Open(path)
		if core.KindOf(err) != core.Invalid || strings.Contains(err.Error(), key[:6]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sealed.Open(path + ".none"); !errors.Is(err, sealed.ErrMissing) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestAPipeInPlaceOfTheKeyFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sealed.Open(path); core.KindOf(err) != core.Invalid {
		t.Error(err)
	}
}

func TestALinkToTheKeyFileStaysOneAndItsFileGetsTheNewKey(t *testing.T) {
	_, path := newBox(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	box, err := sealed.Open(link)
	if err != nil {
		t.Fatal(err)
	}
	id, err := box.Add()
	if err != nil {
		t.Fatal(err)
	}
	if real, err := sealed.Open(path); err != nil || real.ID() != id {
		t.Errorf("the file has %v, %v", real.IDs(), err)
	}
}

func TestAfterAddTheNewKeySealsAndAllKeysOpen(t *testing.T) {
	box, path := newBox(t)
	old, _ := box.Seal(place, "before")
	first := box.ID()
	id, err := box.Add()
	if err != nil || id == first || box.ID() != id {
		t.Fatalf("added %s to %s: %v", id, first, err)
	}
	young, _ := box.Seal(place, "after")
	if sealed.KeyOf(old) != first || sealed.KeyOf(young) != id {
		t.Errorf("the values name %s and %s", sealed.KeyOf(old), sealed.KeyOf(young))
	}
	again, err := sealed.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.IDs(), []string{id, first}) {
		t.Errorf("the file has %v", again.IDs())
	}
	for _, b := range []*sealed.Box{box, again} {
		for value, want := range map[string]string{old: "before", young: "after"} {
			if text, err := b.Open(place, value); err != nil || text != want {
				t.Errorf("%s: %q, %v", want, text, err)
			}
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("beside the file there is %v", entries)
	}
}

// What is stored opens in every later version.
func TestTheFormatsOfFileAndValueStayTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.key")
	if err := os.WriteFile(path, []byte("ab66c3ba AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	box, err := sealed.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := box.Open(place, "s1.ab66c3ba.zUucr3WG2O7gWbI-FsuRmyqBgHTq4ZA_quM70OejDI5TVvV83w"); err != nil || text != "as before" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestKeysOfAFileAreLimited(t *testing.T) {
	box, _ := newBox(t)
	for n := 1; n < 32; n++ {
		if _, err := box.Add(); err != nil {
			t.Fatalf("key %d: %v", n+1, err)
		}
	}
	if _, err := box.Add(); core.KindOf(err) != core.Conflict {
		t.Errorf("a key too many: %v", err)
	}
}

func TestOnlyAHolderOfTheKeyFileSignsAText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.key")
	box, err := sealed.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := sealed.Create(filepath.Join(t.TempDir(), "content.key"))
	if err != nil {
		t.Fatal(err)
	}
	mac := box.Sign("text")
	for name, got := range map[string]bool{"another key": other.Signed("text", mac), "another text": box.Signed("texts", mac), "no mac": box.Signed("text", ""), "a cut one": box.Signed("text", mac[1:])} {
		if got {
			t.Errorf("%s: signed", name)
		}
	}
	if _, err := box.Add(); err != nil {
		t.Fatal(err)
	}
	if box, err = sealed.Open(path); err != nil || !box.Signed("text", mac) || box.Sign("text") == mac {
		t.Errorf("after a rotation and a restart it is not signed: %v", err)
	}
}
