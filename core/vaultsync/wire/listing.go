package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Files yields files by calling f with each, and returns its first error or one of its own.
type Files func(f func(File) error) error

// Write writes a listing as JSON, a file at a time: that of head, with these files, and the
// digest that is known behind them.
func Write(w io.Writer, head Listing, files, deleted Files, digest func() string) error {
	head.Files, head.Deleted = nil, nil
	text, err := json.Marshal(struct {
		Root        string `json:"root"`
		GeneratedAt string `json:"generated_at"`
		Cursor      string `json:"cursor"`
		Epoch       string `json:"epoch"`
		Complete    bool   `json:"complete"`
	}{head.Root, head.GeneratedAt, head.Cursor, head.Epoch, head.Complete})
	if err != nil {
		return err
	}
	if _, err := w.Write(text[:len(text)-1]); err != nil {
		return err
	}
	for _, list := range []struct {
		name  string
		files Files
	}{{"files", files}, {"deleted", deleted}} {
		if _, err := fmt.Fprintf(w, ",%q:[", list.name); err != nil {
			return err
		}
		comma := ""
		err := list.files(func(f File) error {
			text, err := json.Marshal(f)
			if err == nil {
				_, err = fmt.Fprintf(w, "%s%s", comma, text)
			}
			comma = ","
			return err
		})
		if err == nil {
			_, err = io.WriteString(w, "]")
		}
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, ",\"digest\":%q}\n", digest())
	return err
}

// Read reads a listing as it arrives: it calls file with each file, and returns the listing
// without them.
func Read(r io.Reader, file func(f File, deleted bool) error) (l Listing, err error) {
	d := json.NewDecoder(r)
	if err := expect(d, json.Delim('{')); err != nil {
		return l, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return l, err
		}
		switch name {
		case "files", "deleted":
			err = readFiles(d, func(f File) error { return file(f, name == "deleted") })
		case "root":
			err = d.Decode(&l.Root)
		case "generated_at":
			err = d.Decode(&l.GeneratedAt)
		case "cursor":
			err = d.Decode(&l.Cursor)
		case "epoch":
			err = d.Decode(&l.Epoch)
		case "complete":
			err = d.Decode(&l.Complete)
		case "digest":
			err = d.Decode(&l.Digest)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return l, err
		}
	}
	return l, expect(d, json.Delim('}'))
}

func readFiles(d *json.Decoder, file func(File) error) error {
	if err := expect(d, json.Delim('[')); err != nil {
		return err
	}
	for d.More() {
		var f File
		if err := d.Decode(&f); err != nil {
			return err
		}
		if err := file(f); err != nil {
			return err
		}
	}
	return expect(d, json.Delim(']'))
}

func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && t != want {
		err = fmt.Errorf("%v instead of %v in a listing", t, want)
	}
	return err
}
