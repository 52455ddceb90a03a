package values

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A Secret is a value that no print, log or JSON shows. Reveal gives it to
// the one place that needs it.
type Secret struct {
	value *string // a pointer, so that a print that reaches inside shows an address
}

// NewSecret hides s.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{&s}
}

// Reveal returns the value itself; "" when none is set.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsSet reports whether there is a value.
func (s Secret) IsSet() bool { return s.value != nil }

// String returns "[set]", or "" without a value.
func (s Secret) String() string {
	if s.value == nil {
		return ""
	}
	return "[set]"
}

// Format prints String whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText makes JSON and YAML hold String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue makes a log hold String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Decode takes the value from the environment.
func (s *Secret) Decode(value string) error {
	*s = NewSecret(value)
	return nil
}

// maxSecret bounds a secret's file, in bytes.
const maxSecret = 16 << 10

// ReadSecret reads a secret from a file of at most 16 KiB, without the line end
// that editors leave behind it. The error never holds it.
func ReadSecret(path string) (Secret, error) {
	// Without waiting: a pipe that no one writes to would hold up a reload.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Secret{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return Secret{}, err
	}
	s := strings.TrimRight(string(b), "\r\n")
	switch {
	case len(b) > maxSecret:
		return Secret{}, fmt.Errorf("the file %s is larger than %d bytes", path, maxSecret)
	case s == "":
		return Secret{}, fmt.Errorf("the file %s is empty", path)
	}
	return NewSecret(s), nil
}

// WriteSecret writes a secret into a file that only this user may read, in a directory
// that is made if it is missing. A crash leaves the old file or the new one; when it has
// returned, a power cut leaves the new one.
func WriteSecret(path string, s Secret) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.WriteString(s.Reveal() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir))) // dir may be new
}

// syncDir has the names in a directory written to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
