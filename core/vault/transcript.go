package vault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"gatehouse/core"
)

// A Transcript is a session's file, open for appending. It is for one
// goroutine at a time.
type Transcript struct {
	v     *Vault
	name  string
	f     *os.File
	size  int64
	cut   int64
	dirty bool
	fresh []string // directories to sync with the first Sync
}

// OpenTranscript opens or makes the file that Vault.Transcript named. A last
// line that a crash has torn is cut off first; a whole last line without its
// newline is kept and ended.
func (v *Vault) OpenTranscript(name string) (*Transcript, error) {
	t := &Transcript{v: v, name: name}
	if err := t.open(); err != nil {
		return nil, explain("open transcript", err)
	}
	if err := t.repair(); err != nil {
		return nil, errors.Join(explain("mend transcript", err), t.f.Close())
	}
	return t, nil
}

func (t *Transcript) open() (err error) {
	const flag = os.O_RDWR | os.O_APPEND
	t.f, err = t.v.root.OpenFile(t.name, flag, 0)
	if errors.Is(err, fs.ErrNotExist) {
		t.fresh = t.v.missing(path.Dir(t.name))
		t.f, err = t.v.open(t.name, flag|os.O_CREATE)
	}
	if err != nil {
		return err
	}
	st, err := t.f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = core.Errorf(core.Invalid, "the transcript is not a plain file")
	}
	if err != nil {
		return errors.Join(err, t.f.Close())
	}
	if t.size = st.Size(); t.size == 0 && t.fresh == nil {
		t.fresh = []string{path.Dir(t.name)} // made before a crash, perhaps never on the disk
	}
	return nil
}

// missing returns dir and the directories whose entries change when dir is made.
func (v *Vault) missing(dir string) []string {
	need := []string{dir}
	for dir != "." {
		if _, err := v.root.Lstat(dir); err == nil {
			break
		}
		dir = path.Dir(dir)
		need = append(need, dir)
	}
	return need
}

// repair removes an incomplete last line.
func (t *Transcript) repair() error {
	if t.size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := t.f.ReadAt(last[:], t.size-1); err != nil || last[0] == '\n' {
		return err
	}
	start, err := t.lastLine()
	if err != nil {
		return err
	}
	if n := t.size - start; n <= maxLine {
		line := make([]byte, n)
		if _, err := t.f.ReadAt(line, start); err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' && json.Valid(line) {
			t.dirty = true
			return t.write([]byte{'\n'})
		}
	}
	if err := t.v.Fenced(); err != nil {
		return err
	}
	t.cut, t.size, t.dirty = t.size-start, start, true
	return t.f.Truncate(start)
}

// lastLine returns the offset of the last line.
func (t *Transcript) lastLine() (int64, error) {
	buf := make([]byte, 32<<10)
	for end := t.size; end > 0; {
		n := min(end, int64(len(buf)))
		if _, err := t.f.ReadAt(buf[:n], end-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

// Cut returns how many bytes of an incomplete last line were removed on opening.
func (t *Transcript) Cut() int64 { return t.cut }

// Append writes whole lines, in order, with one write. When the disk takes
// only a part of them, that part is taken back. Without lines it only makes the
// next Sync do its work, for lines that an earlier process has written.
func (t *Transcript) Append(lines ...Line) error {
	var b bytes.Buffer
	for i := range lines {
		if err := lines[i].Encode(&b); err != nil {
			return fmt.Errorf("encode transcript line: %w", err)
		}
	}
	t.dirty = true
	if b.Len() == 0 {
		return nil
	}
	return explain("append to transcript", t.write(b.Bytes()))
}

func (t *Transcript) write(p []byte) error {
	if err := t.v.Fenced(); err != nil {
		return err
	}
	n, err := t.f.Write(p)
	if err != nil {
		if n > 0 {
			err = errors.Join(err, t.f.Truncate(t.size))
		}
		return err
	}
	t.size += int64(n)
	return nil
}

// Sync syncs what was appended: one fsync for the file, and one for each
// directory that has a new entry. Without changes it does nothing.
func (t *Transcript) Sync() error {
	if !t.dirty {
		return nil
	}
	if err := t.f.Sync(); err != nil {
		return explain("sync transcript", err)
	}
	for _, dir := range t.fresh {
		if err := t.v.syncDir(dir); err != nil {
			return explain("sync transcript", err)
		}
	}
	t.dirty, t.fresh = false, nil
	return nil
}

// Size returns the file's length in bytes, without what other processes have
// appended since it was opened.
func (t *Transcript) Size() int64 { return t.size }

// Stat returns the file's present description.
func (t *Transcript) Stat() (fs.FileInfo, error) { return t.f.Stat() }

// Close closes the file without Sync.
func (t *Transcript) Close() error { return t.f.Close() }

// Limits of reading. maxLine also limits what repair reads.
const (
	maxLine = 16 << 20
	// MaxTail is the most that ReadTail reads.
	MaxTail = 32 << 20
)

// ReadTail reads the last lines of a transcript, at most limit bytes (at most
// MaxTail), without loading the rest. A missing file is fs.ErrNotExist.
func (v *Vault) ReadTail(name string, limit int64) (Tail, error) {
	st, err := v.root.Stat(name)
	if err != nil {
		return Tail{}, explain("read transcript", err)
	}
	if !st.Mode().IsRegular() { // before opening: a pipe would block
		return Tail{}, core.Errorf(core.Invalid, "the transcript is not a plain file")
	}
	f, err := v.root.Open(name)
	if err != nil {
		return Tail{}, explain("read transcript", err)
	}
	defer f.Close()
	if st, err = f.Stat(); err != nil {
		return Tail{}, explain("read transcript", err)
	}
	start := max(0, st.Size()-min(limit, MaxTail))
	data := make([]byte, st.Size()-start)
	n, err := f.ReadAt(data, start)
	if err != nil && !errors.Is(err, io.EOF) {
		return Tail{}, explain("read transcript", err)
	}
	data = data[:n]
	if start > 0 { // the first line is cut: leave it out
		i := bytes.IndexByte(data, '\n')
		data = data[i+1:]
		if i < 0 {
			data = nil
		}
	}
	t := Tail{Whole: start == 0, Info: st}
	t.Lines, t.Skipped = parse(data)
	return t, nil
}

// parse reads lines; what is no line of a transcript is counted.
func parse(data []byte) (lines []Line, skipped int) {
	for raw := range bytes.Lines(data) {
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 {
			continue
		}
		var l Line
		if len(raw) > maxLine || json.Unmarshal(raw, &l) != nil || l.UUID == "" || l.Type == "" {
			skipped++
			continue
		}
		lines = append(lines, l)
	}
	return lines, skipped
}

// Stat returns the present description of the file name.
func (v *Vault) Stat(name string) (fs.FileInfo, error) {
	st, err := v.root.Stat(name)
	return st, explain("look at file", err)
}

// FindTranscripts lists the transcripts with this session id in any project
// directory, at most 8 of them; the first 10,000 directories are searched.
func (v *Vault) FindTranscripts(session string) ([]string, error) {
	if !ValidID(session) {
		return nil, core.Errorf(core.Invalid, "the session id is not valid")
	}
	d, err := v.root.Open(projectDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("find transcript", err)
	}
	defer d.Close()
	entries, err := d.ReadDir(10_000)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, explain("find transcript", err)
	}
	var found []string
	for _, e := range entries {
		name := path.Join(projectDir, e.Name(), session+".jsonl")
		if st, err := v.root.Stat(name); err == nil && st.Mode().IsRegular() && len(found) < 8 {
			found = append(found, name)
		}
	}
	return found, nil
}
