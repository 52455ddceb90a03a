package main

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// settling limits the runs of each device until all trees are the same.
const settling = 6

// syncedTree returns the files of a folder, without what is not synced.
func syncedTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		switch {
		case err != nil:
			return err
		case rel != "." && e.IsDir() && strings.HasPrefix(e.Name(), "."), e.IsDir() && e.Name() == "Chat":
			return fs.SkipDir
		case e.Type().IsRegular() && !strings.HasPrefix(e.Name(), "."):
			data, err := os.ReadFile(p)
			files[rel] = string(data)
			return err
		case strings.HasSuffix(e.Name(), ".gatehouse-tmp"):
			t.Errorf("%s remains", p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// A syncRig is a gateway and two devices, as processes.
type syncRig struct {
	*home
	server  *proc
	devices []string
	written []string // ids of entries
}

// newSyncRig starts a gateway whose vault has further files, by name.
func newSyncRig(t *testing.T, files map[string]string) *syncRig {
	t.Helper()
	r := &syncRig{home: newHome(t, nil)}
	for name, text := range files {
		r.file(r.vault(), name, text)
	}
	r.server = r.serve(nil)
	r.env["GATEHOUSE_ADDR"] = r.server.addr() // the devices know it, also after a restart
	code, out, errs := r.run("keys", "create", "device", "--scope", "sync", "--trust", "vault", "--for", "0")
	key := regexp.MustCompile(`gh_[A-Za-z0-9_-]+`).FindString(out)
	if code != 0 || key == "" {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "key"), []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	r.devices = []string{filepath.Join(r.dir, "laptop"), filepath.Join(r.dir, "phone")}
	return r
}

// file writes a file in a directory.
func (r *syncRig) file(dir, name, text string) {
	r.t.Helper()
	at := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(at), 0o700)
	if err == nil {
		err = os.WriteFile(at, []byte(text), 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *syncRig) sync(device string) *proc {
	r.t.Helper()
	return r.start(nil, "sync", device, "--server", "http://"+r.env["GATEHOUSE_ADDR"], "--key-file", filepath.Join(r.dir, "key"), "--device", filepath.Base(device))
}

// edit adds an entry to the same day on each side, and a file.
func (r *syncRig) edit(round int, rnd *rand.Rand) {
	r.t.Helper()
	for i, at := range append([]string{r.vault()}, r.devices...) {
		id := fmt.Sprintf("%012d", round*10+i)
		r.written = append(r.written, id)
		appendTo(r.t, filepath.Join(at, "Daily", "2026-01-28.md"), "\n# para:"+id+" 9:00 AM\n\nwritten as "+id+"\n")
		appendTo(r.t, filepath.Join(at, "Notes", fmt.Sprintf("%d-%d.md", round, i)), strings.Repeat("a line\n", 1+rnd.IntN(20_000)))
	}
}

// settle syncs both devices until all trees are the same, and returns that of the vault.
func (r *syncRig) settle() map[string]string {
	r.t.Helper()
	for range settling {
		for _, device := range r.devices {
			if p := r.sync(device); p.end() != 0 {
				r.t.Fatalf("%s: %s %s", filepath.Base(device), p.out.String(), p.err.String())
			}
		}
		want := syncedTree(r.t, r.vault())
		if !slices.ContainsFunc(r.devices, func(device string) bool { return !maps.Equal(syncedTree(r.t, device), want) }) {
			return want
		}
	}
	r.t.Fatalf("the trees differ after %d runs of each device", settling)
	return nil
}

// Processes of the server and of two devices are killed at any moment, while the same day
// and other files are edited on all sides. In the end all trees are the same, and all that
// anyone wrote is there.
func TestSyncSurvivesKillsOfTheServerAndOfDevices(t *testing.T) {
	t.Parallel()
	rounds, seed := number(t, "GATEHOUSE_TEST_ROUNDS", 6), number(t, "GATEHOUSE_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("%d rounds; GATEHOUSE_TEST_SEED=%d repeats the random choices", rounds, seed)
	rnd := rand.New(rand.NewPCG(uint64(seed), 1))
	r := newSyncRig(t, nil)
	killed := 0
	for round := range rounds {
		r.edit(round, rnd)
		running := []*proc{r.sync(r.devices[0]), r.sync(r.devices[1])}
		select {
		case <-time.After(time.Duration(rnd.IntN(300)) * time.Millisecond): // the moment is what is drawn
		case <-running[0].done:
		}
		victims := [][]*proc{{running[0]}, {r.server}, running}[round%3]
		for _, p := range victims {
			if !p.ended() {
				killed++
			}
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		if r.server.ended() {
			r.server = r.serve(nil)
		}
		for _, p := range running {
			p.end()
		}
	}
	want := r.settle()
	all := strings.Join(slices.Collect(maps.Values(want)), "\n")
	for _, id := range r.written {
		if !strings.Contains(all, "written as "+id) {
			t.Errorf("the entry %s is lost", id)
		}
	}
	for name, text := range want {
		if strings.HasPrefix(name, "Notes/") && regexp.MustCompile(`^Notes/\d+-\d\.md$`).MatchString(name) && len(text)%len("a line\n") != 0 {
			t.Errorf("%s is cut off", name)
		}
	}
	if killed == 0 {
		t.Error("no process was killed while it ran")
	}
	t.Logf("%d processes were killed, %d files", killed, len(want))
}
