package files

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/core"
	"gatehouse/core/tool"
)

func TestReadNumbersLinesAndCutsWhatIsLong(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("crlf.txt", "one\r\ntwo\r\n\r\nlast without end")
	if got := b.ok("Read", in{"file_path": "crlf.txt"}); got != "     1\tone\n     2\ttwo\n     3\t\n     4\tlast without end\n" {
		t.Errorf("%q", got)
	}
	b.put("many.txt", strings.Repeat("x\n", 5000))
	got := b.ok("Read", in{"file_path": "many.txt"})
	if strings.Count(got, "\tx\n") != 2000 || !strings.HasSuffix(got, "(there is more: go on with offset 2001)") {
		t.Errorf("%q", got[len(got)-80:])
	}
	if got := b.ok("Read", in{"file_path": "many.txt", "offset": 4999}); got != "  4999\tx\n  5000\tx\n" {
		t.Errorf("%q", got)
	}
	if got := b.ok("Read", in{"file_path": "many.txt", "offset": 5001}); got != "(the file ends before line 5001: it has 5000 lines)" {
		t.Errorf("%q", got)
	}
	b.put("long.txt", strings.Repeat("ä", 2500)+"\nnext\n"+strings.Repeat("b", 200_000)+"\nend\n")
	got = b.ok("Read", in{"file_path": "long.txt"})
	want := "     1\t" + strings.Repeat("ä", 2000) + "… (the line is cut: it has 5001 bytes)\n     2\tnext\n     3\t" +
		strings.Repeat("b", 2000) + "… (the line is cut: it has 200001 bytes)\n     4\tend\n"
	if got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	b.put("wide.txt", strings.Repeat(strings.Repeat("c", 1500)+"\n", 500))
	if got := b.ok("Read", in{"file_path": "wide.txt"}); len(got) > maxOutput+2000 || !strings.HasSuffix(got, "(there is more: go on with offset 67)") {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-60:])
	}
	b.put("empty.txt", "")
	if got := b.ok("Read", in{"file_path": "empty.txt"}); got != "(the file is empty)" {
		t.Errorf("%q", got)
	}
	b.put("bytes.txt", "a\xffb\n")
	if got := b.ok("Read", in{"file_path": "bytes.txt"}); got != "     1\ta\uFFFDb\n" {
		t.Errorf("%q", got)
	}
	b.put("n.ipynb", `{"cells": []}`)
	if got := b.ok("Read", in{"file_path": "n.ipynb"}); got != "     1\t{\"cells\": []}\n" {
		t.Errorf("%q", got)
	}
}

func picturesOf(t *testing.T, w, h int) map[string]string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, w, h))
	out := map[string]string{}
	var b bytes.Buffer
	for kind, encode := range map[string]func() error{
		"image/png":  func() error { return png.Encode(&b, img) },
		"image/jpeg": func() error { return jpeg.Encode(&b, img, nil) },
		"image/gif":  func() error { return gif.Encode(&b, img, nil) },
	} {
		b.Reset()
		if err := encode(); err != nil {
			t.Fatal(err)
		}
		out[kind] = b.String()
	}
	return out
}

func TestPicturesAndDocumentsAreMediaWithinLimits(t *testing.T) {
	b := newBench(t, core.Vault)
	all := picturesOf(t, 3, 2)
	all["image/webp"] = "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"
	all["application/pdf"] = "%PDF-1.4\n1 0 obj <</Type /Pages /Count 1>>\n2 0 obj <</Type /Page /Parent 1 0 R>>\n"
	for kind, data := range all {
		b.put("Media/x.bin", data) // by content, not by name
		r, err := b.call("Read", in{"file_path": "Media/x.bin"})
		if err != nil || len(r.Media) != 1 || r.Media[0].Type != kind || string(r.Media[0].Data) != data || r.Media[0].Name != "x.bin" {
			t.Errorf("%s: %v %+v", kind, err, r)
		}
	}
	b.put("big.png", all["image/png"]+strings.Repeat("\x00", maxPicture))
	b.fails(core.TooLarge, "Read", in{"file_path": "big.png"}, "picture has", "3750000")
	b.put("wide.png", picturesOf(t, 8001, 1)["image/png"])
	b.fails(core.TooLarge, "Read", in{"file_path": "wide.png"}, "8001 × 1 pixels")
	b.put("broken.png", all["image/png"][:20])
	b.fails(core.Invalid, "Read", in{"file_path": "broken.png"}, "damaged")
	b.put("long.pdf", "%PDF-1.4\n"+strings.Repeat("<</Type/Page/Parent 1 0 R>>\n", 101))
	b.fails(core.TooLarge, "Read", in{"file_path": "long.pdf"}, "101 pages")
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	fmt.Fprint(z, strings.Repeat("<</Type /Page>> ", 150))
	_ = z.Close()
	b.put("packed.pdf", "%PDF-1.5\n5 0 obj <</Type /ObjStm /N 150 /Filter /FlateDecode>>\nstream\r\n"+packed.String()+"\nendstream\n")
	b.fails(core.TooLarge, "Read", in{"file_path": "packed.pdf"}, "150 pages")
	b.put("huge.pdf", "%PDF-1.4\n"+strings.Repeat(" ", maxDocument))
	b.fails(core.TooLarge, "Read", in{"file_path": "huge.pdf"})
}

func TestWhatIsNoTextIsRefusedInWords(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("a.zip", "PK\x03\x04\x00\x00\x00binary")
	b.fails(core.Invalid, "Read", in{"file_path": "a.zip"}, "binary file (application/zip, 13 bytes)")
	b.fails(core.Invalid, "Read", in{"file_path": "."}, "folder", "Glob")
	b.fails(core.NotFound, "Read", in{"file_path": "none.md"}, "none.md does not exist")
	b.fails(core.NotFound, "Read", in{"file_path": "a.zip/x"}, "does not exist")
	b.fails(core.NotFound, "Read", in{"file_path": strings.Repeat("n", 300)}, "does not exist")
	b.fails(core.Invalid, "Read", in{"file_path": ""}, "file_path is empty")
	b.fails(core.Invalid, "Read", in{"file_path": "a\x00b"}, "NUL")
	b.fails(core.Invalid, "Read", in{"file_path": "a", "offset": -1}, "not negative")
	b.fails(core.Invalid, "Read", in{"path": "a"}, `"path" is not an input`)
}

// A pipe nobody writes to must not hold the gateway up: the tests would never end.
func TestPipesSocketsAndDevicesAreNeverOpened(t *testing.T) {
	b := newBench(t, core.Full)
	pipe := filepath.Join(b.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(b.dir, "sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: sock}); err != nil {
		t.Skip("the path is too long for a socket")
	}
	b.fails(core.Invalid, "Read", in{"file_path": "pipe"}, "named pipe")
	b.fails(core.Invalid, "Read", in{"file_path": "sock"}, "socket")
	b.fails(core.Invalid, "Write", in{"file_path": "pipe", "content": "x"}, "named pipe")
	b.fails(core.Invalid, "Edit", in{"file_path": "pipe", "old_string": "x", "new_string": "y"}, "named pipe")
	b.fails(core.Invalid, "Grep", in{"pattern": "x", "path": "pipe"}, "named pipe")
	b.ok("Glob", in{"pattern": "*"})
	b.ok("Grep", in{"pattern": "x"})
	b.fails(core.NotFound, "Write", in{"file_path": "pipe/x", "content": "x"}, "no folder")
	for _, name := range []string{"/dev/zero", "/dev/tty", "/proc/self/environ", "/proc/1/environ", "/sys/kernel/notes"} {
		b.fails(core.Denied, "Read", in{"file_path": name}, "/proc, /sys and /dev")
	}
	dev := filepath.Join(b.dir, "dev")
	if syscall.Mknod(dev, syscall.S_IFCHR|0o600, 1<<8|5) == nil { // /dev/zero; needs root
		b.fails(core.Invalid, "Read", in{"file_path": "dev"}, "device")
	}
}

func TestOutsideOfTheVaultIsForFullTrustOnly(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.txt")
	if err := os.WriteFile(out, []byte("outside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := newBench(t, core.Full)
	if got := full.ok("Read", in{"file_path": out}); got != "     1\toutside\n" {
		t.Errorf("%q", got)
	}
	full.ok("Write", in{"file_path": out, "content": "changed\n"})
	full.ok("Edit", in{"file_path": out, "old_string": "changed", "new_string": "edited"})
	if got, _ := os.ReadFile(out); string(got) != "edited\n" {
		t.Errorf("%q", got)
	}
	if got := full.ok("Glob", in{"pattern": filepath.Dir(out) + "/*.txt"}); got != out+"\n" {
		t.Errorf("%q", got)
	}
	if got := full.ok("Grep", in{"pattern": "edit", "path": filepath.Dir(out)}); got != out+"\n" {
		t.Errorf("%q", got)
	}
	full.turn.MayRead = func(name string) bool { return name != out }
	full.fails(core.Denied, "Read", in{"file_path": out}, "may not be read")
	if got := full.ok("Grep", in{"pattern": "edit", "path": filepath.Dir(out)}); strings.Contains(got, "out.txt") {
		t.Errorf("a refused file is named: %q", got)
	}

	for _, trust := range []core.Trust{core.Stranger, core.Sandboxed, core.Vault} {
		b := newBench(t, trust) // its bounds allow everything: the tools themselves must not
		link := filepath.Join(b.dir, "link.txt")
		if err := os.Symlink(out, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Dir(out), filepath.Join(b.dir, "linked")); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{out, "link.txt", link, "linked/out.txt", "linked/new.txt", "../out.txt"} {
			b.fails(core.Denied, "Read", in{"file_path": p}, "out of the vault")
			b.fails(core.Denied, "Write", in{"file_path": p, "content": "x"}, "out of the vault")
			b.fails(core.Denied, "Edit", in{"file_path": p, "old_string": "edited", "new_string": "x"}, "out of the vault")
		}
		for _, p := range []string{filepath.Dir(out), "linked", ".."} {
			b.fails(core.Denied, "Grep", in{"pattern": "edited", "path": p}, "out of the vault")
			b.fails(core.Denied, "Glob", in{"pattern": "*", "path": p}, "out of the vault")
			b.fails(core.Denied, "Glob", in{"pattern": p + "/*"}, "out of the vault")
		}
		if got := b.ok("Grep", in{"pattern": "edited"}); got != "Nothing matches.\n" {
			t.Errorf("a link is followed: %q", got)
		}
	}
}

func TestABoundThatNoOneSetOpensNothing(t *testing.T) {
	b := newBench(t, core.Full)
	b.put("a.md", "text")
	b.turn.MayRead, b.turn.MayWrite = nil, nil
	b.fails(core.Denied, "Read", in{"file_path": "a.md"})
	b.fails(core.Denied, "Write", in{"file_path": "b.md", "content": "x"})
	b.fails(core.Denied, "Edit", in{"file_path": "a.md", "old_string": "t", "new_string": "x", "replace_all": true})
	b.fails(core.Denied, "Glob", in{"pattern": "*"})
	b.fails(core.Denied, "Grep", in{"pattern": "t"})
	for name, x := range b.tools { // and neither does a call that nobody decided on
		input := map[string]string{"Read": `{"file_path":"a.md"}`, "Write": `{"file_path":"b.md","content":""}`, "Edit": `{"file_path":"a.md","old_string":"t","new_string":"x"}`,
			"Glob": `{"pattern":"*"}`, "Grep": `{"pattern":"t"}`}[name]
		b.turn.MayRead = func(string) bool { return true }
		b.turn.MayWrite = b.turn.MayRead
		if _, err := x.Run(t.Context(), &tool.Call{Input: []byte(input), Turn: b.turn}); core.KindOf(err) != core.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
}
