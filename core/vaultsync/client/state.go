package client

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gatehouse/core"
	"gatehouse/core/vaultsync/wire"
)

// A state is what the client knows after a run. Its form on the disk is a JSON object; it is
// written and read a file at a time, in the order of the paths.
type state struct {
	Version int
	Server  string
	Cursor  string
	Epoch   string            // of the cursor; "": not known
	Files   map[string]*known // by path; at most wire.MaxFiles of each side
}

// A known is a file. There is one for each of up to wire.MaxFiles, so it is small.
type known struct {
	Base   content `json:"b,omitzero"` // both sides had it, or the server knows that it was edited here
	Remote content `json:"r,omitzero"` // the server has it
	Local  content `json:"l,omitzero"` // the directory has it
	Mark   mark    `json:"m,omitzero"` // of the file that has Local

	size   int64  // of the file here
	seen   uint32 // the scan that found it
	listed listed
}

// listed is what a listing has of a file.
type listed uint8

const (
	unlisted listed = iota
	present
	deleted
)

// A content is the hash of a content; the zero value is no file.
type content [sha256.Size]byte

// contentOf returns the content that a valid hash of the wire names, "" for none.
func contentOf(hash string) (c content) {
	if wire.ValidHash(hash) {
		_, _ = hex.Decode(c[:], []byte(wire.Hex(hash))) // it is valid
	}
	return c
}

// String returns the hash as the wire has it.
func (c content) String() string {
	if c == (content{}) {
		return ""
	}
	return wire.FromHex(hex.EncodeToString(c[:]))
}

// MarshalText implements encoding.TextMarshaler.
func (c content) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *content) UnmarshalText(text []byte) error {
	*c = contentOf(string(text))
	return nil
}

// A mark is the beginning of the hash of a place.Found's mark; the zero value is none. One that
// is read from an older state has another form, and is none.
type mark [16]byte

// markOf returns the mark of a text, none for "".
func markOf(text string) (m mark) {
	if text != "" {
		sum := sha256.Sum256([]byte(text))
		copy(m[:], sum[:])
	}
	return m
}

// MarshalText implements encoding.TextMarshaler.
func (m mark) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, m[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *mark) UnmarshalText(text []byte) error {
	if *m = (mark{}); len(text) == 2*len(m) {
		if _, err := hex.Decode(m[:], text); err != nil {
			*m = mark{}
		}
	}
	return nil
}

// of returns what is known of a file, which may be nothing.
func (s *state) of(name string) *known {
	k := s.Files[name]
	if k == nil {
		k = &known{}
		s.Files[name] = k
	}
	return k
}

const (
	stateName    = "state.json"
	stateVersion = 1
)

// load reads the state. That of another server is not used: then all files are compared.
func (c *Client) load() error {
	c.state = state{Version: stateVersion, Server: c.o.Server, Files: map[string]*known{}}
	f, err := os.Open(c.statePath(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what was synced last: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	was := state{Files: map[string]*known{}}
	if err := was.read(io.TeeReader(bufio.NewReaderSize(f, stateBuffer), h)); err != nil {
		return fmt.Errorf("read what was synced last: %w", err)
	}
	switch {
	case was.Version != stateVersion:
		return core.Errorf(core.Conflict, "%s was written by another version: remove it to compare all files again", c.statePath(stateName))
	case was.Server != c.o.Server:
		return core.Errorf(core.Conflict, "%s is synced with %s: give that as --server, or remove %s to compare all files again", c.o.Dir, was.Server, filepath.Join(c.o.Dir, wire.StateDir))
	}
	c.state = was
	h.Sum(c.saved[:0])
	return nil
}

// stateBuffer is how much of the state is read or written at a time, in bytes.
const stateBuffer = 64 << 10

// read reads what write wrote.
func (s *state) read(r io.Reader) error {
	d := json.NewDecoder(r)
	return object(d, func(name string) error {
		switch name {
		case "version":
			return d.Decode(&s.Version)
		case "server":
			return d.Decode(&s.Server)
		case "cursor":
			return d.Decode(&s.Cursor)
		case "epoch":
			return d.Decode(&s.Epoch)
		case "files":
			return object(d, func(path string) error { return d.Decode(s.of(path)) })
		}
		return d.Decode(new(json.RawMessage))
	})
}

// object calls field with the name of each field of the object that follows, for which it reads
// the value.
func object(d *json.Decoder, field func(name string) error) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return cmp.Or(err, errors.New("it is no JSON object"))
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // as JSON has it
		if err := field(name); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// write writes the state.
func (s *state) write(to io.Writer) error {
	w := bufio.NewWriterSize(to, stateBuffer)
	server, err := json.Marshal(s.Server)
	if err != nil {
		return err
	}
	cursor, err := json.Marshal(s.Cursor)
	if err != nil {
		return err
	}
	epoch, err := json.Marshal(s.Epoch)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, `{"version":%d,"server":%s,"cursor":%s,"epoch":%s,"files":{`, s.Version, server, cursor, epoch) // Flush returns the error
	comma := ""
	for _, name := range s.names() {
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		value, err := json.Marshal(s.Files[name])
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n%s:%s", comma, key, value)
		comma = ","
	}
	fmt.Fprint(w, "}}\n")
	return w.Flush()
}

// names returns all known files, in order.
func (s *state) names() []string {
	list := make([]string, 0, len(s.Files))
	for name := range s.Files {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func (c *Client) statePath(name string) string {
	return filepath.Join(c.o.Dir, wire.StateDir, name)
}

// save writes the state in one step, if it is not stored as it is.
func (c *Client) save() error {
	h := sha256.New()
	if err := c.state.write(h); err != nil {
		return err
	}
	var sum [sha256.Size]byte
	if h.Sum(sum[:0]); sum == c.saved {
		return nil
	}
	c.step("state")
	temp := c.statePath(stateName + ".new")
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = c.state.write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	c.step("state written")
	if err := os.Rename(temp, c.statePath(stateName)); err != nil {
		return err
	}
	c.saved = sum
	return nil
}

func (c *Client) step(what string) {
	if c.o.Step != nil {
		c.o.Step(what)
	}
}
