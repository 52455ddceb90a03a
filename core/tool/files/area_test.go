package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool"
)

func TestWrite_DepthOfAGuestsFoldersIsBounded(t *testing.T) {
	b := guest(t)
	b.ok("Write", in{"file_path": strings.Repeat("d/", tool.MaxAreaDepth) + "f.md", "content": "x"})
	b.fails(core.Invalid, "Write", in{"file_path": strings.Repeat("e/", tool.MaxAreaDepth+1) + "f.md", "content": "x"}, "17 folders deep", "choose a shorter path")
	b.fails(core.Invalid, "Edit", in{"file_path": strings.Repeat("e/", 64) + "f.md", "old_string": "", "new_string": "x"}, "64 folders deep")
	if _, err := os.Stat(filepath.Join(b.dir, "Guests/7/e")); err == nil {
		t.Error("folders of a refused file were made")
	}
	b.turn.Trust = core.Vault
	b.ok("Write", in{"file_path": strings.Repeat("v/", 40) + "f.md", "content": "x"})
}

func TestWrite_NumberOfAGuestsFilesIsBounded(t *testing.T) {
	b := guest(t)
	held := func(user, n int) {
		t.Helper()
		for i := range n {
			dir := filepath.Join(b.dir, fmt.Sprintf("Guests/%d/%d", user, i/100))
			must(t, os.MkdirAll(dir, 0o700))
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
		}
	}
	held(8, 200) // another guest's are none of this one's
	held(7, 9898)
	for left := range 2 { // 9,898 files in 99 folders, and mine.md
		began := time.Now()
		_, err := b.call("Write", in{"file_path": "new.md", "content": "x"})
		t.Logf("one Write among 10,000 entries: %v", time.Since(began))
		if err == nil {
			must(t, os.Remove(filepath.Join(b.dir, "Guests/7/new.md")))
			if left == 1 {
				t.Error("more than the bound was made")
			}
			held(7, 9900)
			continue
		}
		if left == 0 || core.KindOf(err) != core.Denied || !strings.Contains(core.TextOf(err), "more than 10000 files and folders: delete some") {
			t.Error(err)
		}
	}
	b.ok("Read", in{"file_path": "0/0"})
	b.ok("Write", in{"file_path": "0/0", "content": ""}) // what does not grow is written
	must(t, os.RemoveAll(filepath.Join(b.dir, "Guests/7/5")))
	b.ok("Write", in{"file_path": "new.md", "content": "x"})
}

func TestWrite_BytesOfAGuestsFilesAreBounded(t *testing.T) {
	b := guest(t)
	f, err := os.Create(filepath.Join(b.dir, "Guests/7/large"))
	must(t, err)
	must(t, f.Truncate(tool.MaxAreaBytes-10)) // sparse
	must(t, f.Close())
	b.fails(core.Denied, "Write", in{"file_path": "new.md", "content": strings.Repeat("x", 1000)}, "512 MB", "delete files")
	b.ok("Write", in{"file_path": "small.md", "content": "x"})
	b.fails(core.Denied, "Edit", in{"file_path": "small.md", "old_string": "x", "new_string": strings.Repeat("y", 1000)}, "512 MB")
}
