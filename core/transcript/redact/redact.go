// Package redact removes what one user wrote from the transcripts of a shared session.
package redact

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/vault"
)

// What is where a forgotten person's text and the answers to them were,
// and where a summary may have notified of them.
const (
	erased        = "[erased: this person was forgotten]"
	erasedSummary = "[erased: this summary was of a time in which somebody spoke who was forgotten]"
)

// A Redaction is a copy of a session's transcripts without one user's messages, which
// has not replaced them yet. End it with Keep or Drop.
type Redaction struct {
	vault *vault.Vault
	drop  func()
	files []redactedFile
	runs  map[string]bool // that had messages
	kept  bool
}

type redactedFile struct {
	name string
	was  fs.FileInfo
	out  *vault.Draft // nil: there is nothing to change
}

// Redact writes copies of the transcripts of a shared session, also of those in the trash, in which one sentence
// replaces everything that the runs wrote, and each summary made after them, because
// its sources cannot be separated. The rest is unchanged. It can be repeated. Keep calls
// forget before and after it replaces them: nothing may stay in memory.
func Redact(v *vault.Vault, id string, runs []string, forget func()) (*Redaction, error) {
	r := &Redaction{vault: v, drop: forget, runs: map[string]bool{}}
	if !vault.ValidID(id) || len(runs) == 0 {
		return r, nil
	}
	of := make(map[string]bool, len(runs))
	for _, run := range runs {
		of[run] = true
	}
	files, err := v.FindTranscripts(id)
	if err != nil {
		return nil, fmt.Errorf("redact session: %w", err)
	}
	trashed, err := v.TrashedAs(id + ".jsonl")
	if err != nil {
		return nil, fmt.Errorf("redact session: %w", err)
	}
	for _, name := range trashed { // what else is called so is none
		if st, err := v.Root().Lstat(name); err == nil && st.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	for _, name := range files {
		if err := r.write(name, of); err != nil {
			r.Drop()
			return nil, fmt.Errorf("redact session: %w", err)
		}
	}
	return r, nil
}

// Keep replaces the transcripts by the copies, and returns how many runs had messages.
// If something has written to the session since Redact, ok is false and nothing is
// changed. Called again it returns the same, because its transaction may run twice.
func (r *Redaction) Keep() (runs int, ok bool, err error) {
	if r.kept {
		return len(r.runs), true, nil
	}
	defer r.Drop()
	for _, f := range r.files {
		now, err := r.vault.Stat(f.name)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, fmt.Errorf("redact session: %w", err)
		}
		if !os.SameFile(now, f.was) || now.Size() != f.was.Size() || !now.ModTime().Equal(f.was.ModTime()) {
			return 0, false, nil
		}
	}
	r.drop()
	defer r.drop()
	for _, f := range r.files {
		if f.out == nil {
			continue
		}
		if err := f.out.Keep(f.name); err != nil {
			return 0, false, fmt.Errorf("redact session: %w", err)
		}
	}
	r.kept = true
	return len(r.runs), true, nil
}

// Drop takes away what was written; after Keep it does nothing.
func (r *Redaction) Drop() {
	for _, f := range r.files {
		if f.out != nil {
			f.out.Drop()
		}
	}
}

// write writes the transcript name without the messages of the runs.
func (r *Redaction) write(name string, of map[string]bool) (err error) {
	in, err := r.vault.Root().Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	f := redactedFile{name: name}
	if f.was, err = in.Stat(); err != nil {
		return err
	}
	if f.out, err = r.vault.Draft(path.Dir(name)); err != nil {
		return err
	}
	changed, err := r.copy(f.out, bufio.NewReaderSize(in, 64<<10), of)
	if err == nil && changed {
		err = f.out.Sync() // the longest part of it
	}
	if err != nil || !changed {
		f.out.Drop()
		f.out = nil
	}
	r.files = append(r.files, f)
	return err
}

func (r *Redaction) copy(out io.Writer, in *bufio.Reader, of map[string]bool) (changed bool, err error) {
	spoke := false // someone of the runs, in front of this line
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return changed, err
		}
		run, theirs := ofRun(line, of)
		spoke = spoke || theirs
		if with, ok := redacted(line, theirs, spoke); ok {
			line, changed = with, true
			if theirs {
				r.runs[run] = true
			}
		}
		if _, err := out.Write(line); err != nil {
			return changed, err
		}
		if err == io.EOF {
			return changed, nil
		}
	}
}

// ofRun returns the run that a line is of, and whether it is one of these.
func ofRun(line []byte, of map[string]bool) (string, bool) {
	var l struct {
		RequestID string `json:"requestId"`
	}
	return l.RequestID, json.Unmarshal(line, &l) == nil && of[l.RequestID]
}

// redacted returns a line without its text if it is theirs or a summary made after they
// spoke; false for other lines. The line keeps its place in the conversation.
func redacted(line []byte, theirs, spoke bool) ([]byte, bool) {
	summary := !theirs && spoke && bytes.Contains(line, []byte(`"isCompactSummary":true`))
	if !theirs && !summary {
		return nil, false
	}
	var l vault.Line
	if json.Unmarshal(line, &l) != nil {
		return nil, false
	}
	text, m := erased, lines.Message{Role: "user"}
	if l.Type == "assistant" {
		m.Role = "assistant"
	}
	if summary {
		text = lines.SummaryIntro + erasedSummary
	}
	m.Blocks = []core.Block{{Type: "text", Text: text}}
	body, err := m.Encode(l.UUID)
	if err != nil || bytes.Equal(bytes.TrimSpace(l.Message), bytes.TrimSpace(body)) { // was done before
		return nil, false
	}
	var b []byte
	if summary { // its other members say what it is
		var all map[string]json.RawMessage
		if json.Unmarshal(line, &all) != nil {
			return nil, false
		}
		all["message"] = body
		b, err = json.Marshal(all)
	} else {
		l.Message, l.Author = body, nil
		b, err = json.Marshal(&l)
	}
	return append(b, '\n'), err == nil
}
