package library

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core/coretest"
)

// watched is a file system that calls open before a file is opened.
type watched struct {
	fs.FS
	open func(name string)
}

func (w *watched) Open(name string) (fs.File, error) {
	if w.open != nil && strings.HasSuffix(name, ".md") {
		w.open(name)
	}
	return w.FS.Open(name)
}

// Of files 10, 20 and 30 of 40 the bar shows how far it is; of an index that was empty before,
// no one knows how many there will be.
func TestRebuild_ShowsHowManyFilesAreDoneOfAll(t *testing.T) {
	files := &watched{}
	s := newShelf(t, func(o *Options) { files.FS, o.Files = o.Files, files })
	clock := s.o.Clock.(*coretest.Clock)
	for i := range 40 {
		if err := os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("n%02d.md", i)), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rebuild := func(stops ...string) (lines []string) {
		t.Helper()
		shown := make(chan string, 1)
		files.open = func(name string) {
			n := slices.Index(stops, name)
			for n >= 0 { // until what is shown has come so far
				clock.Advance(every)
				select {
				case line := <-shown:
					if strings.Contains(line, fmt.Sprintf(" %d ", 10*(n+1))) {
						lines = append(lines, line)
						return
					}
				case <-time.After(time.Millisecond):
				}
			}
		}
		r, err := s.Rebuild(t.Context(), func(line string) {
			select {
			case shown <- line:
			default: // no one waits
			}
		})
		if err != nil || r.Documents != 40 {
			t.Errorf("%+v, %v", r, err)
		}
		return lines
	}
	stops := []string{"n10.md", "n20.md", "n30.md"}
	if got, want := rebuild(stops...), []string{"indexing: 10 files", "indexing: 20 files", "indexing: 30 files"}; !slices.Equal(got, want) {
		t.Errorf("for the first time it shows %q, want %q", got, want)
	}
	want := []string{
		"indexing: [#######-----------------------] 10 of 40 files",
		"indexing: [###############---------------] 20 of 40 files",
		"indexing: [######################--------] 30 of 40 files",
	}
	if got := rebuild(stops...); !slices.Equal(got, want) {
		t.Errorf("again it shows %q, want %q", got, want)
	}
}
