package vaultsync

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// inMemory is how much of a listing is kept in memory, in bytes.
const inMemory = 256 << 10

// A Listing is the JSON of a wire.Listing, to be read once.
type Listing struct {
	open func() (*os.File, error) // of a file for a long one
	buf  bytes.Buffer             // at most inMemory
	file *os.File                 // nil: all is in buf
	size int64
}

// Write implements io.Writer.
func (l *Listing) Write(p []byte) (n int, err error) {
	if l.buf.Len()+len(p) > inMemory {
		if err := l.flush(); err != nil {
			return 0, err
		}
	}
	l.size += int64(len(p))
	return l.buf.Write(p)
}

// flush moves what is in memory to the disk.
func (l *Listing) flush() (err error) {
	if l.file == nil {
		if l.file, err = l.open(); err != nil {
			return err
		}
	}
	_, err = l.buf.WriteTo(l.file)
	return err
}

// rewind ends the writing.
func (l *Listing) rewind() error {
	if l.file == nil {
		return nil
	}
	err := l.flush()
	if err == nil {
		_, err = l.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

// Size returns its length in bytes.
func (l *Listing) Size() int64 { return l.size }

// Read implements io.Reader.
func (l *Listing) Read(p []byte) (int, error) {
	if l.file != nil {
		return l.file.Read(p)
	}
	return l.buf.Read(p)
}

// Close removes what is on the disk.
func (l *Listing) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
