package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

// maxEdit bounds the file that Edit changes, before and after, in bytes.
const maxEdit = 8 << 20

type editInput struct {
	Path string  `json:"file_path" tool:"required"`
	Old  *string `json:"old_string" tool:"required"`
	New  *string `json:"new_string" tool:"required"`
	All  bool    `json:"replace_all"`
}

func decodeEdit(raw json.RawMessage) (in editInput, err error) {
	if err := tool.Decode(raw, &in); err != nil {
		return in, err
	}
	if *in.Old == *in.New {
		return in, core.Errorf(core.Invalid, "old_string and new_string are the same: there is nothing to change")
	}
	return in, fileName(in.Path)
}

func touchEdit(t *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	in, err := decodeEdit(raw)
	if err != nil {
		return tool.Access{}, err
	}
	name, err := t.Name(in.Path)
	return tool.Access{Write: []string{name}}, err
}

func (f *files) edit(ctx context.Context, c *tool.Call) (tool.Result, error) {
	in, err := decodeEdit(c.Input)
	if err != nil {
		return tool.Result{}, err
	}
	shown := place.Shown(c.Turn, in.Path)
	name, err := place.Decided(c.Access.Write, shown)
	if err != nil {
		return tool.Result{}, err
	}
	n, err := f.change(ctx, c, name, in)
	switch {
	case err != nil:
		return tool.Result{}, place.Explain(shown, err)
	case *in.Old == "":
		return tool.Result{Text: fmt.Sprintf("Created: %s (%d bytes).", shown, len(*in.New))}, nil
	case n == 1:
		return tool.Result{Text: fmt.Sprintf("Changed %s in one place.", shown)}, nil
	}
	return tool.Result{Text: fmt.Sprintf("Changed %s in %d places.", shown, n)}, nil
}

// change does the edit and returns how many places it changed.
func (f *files) change(ctx context.Context, c *tool.Call, name string, in editInput) (int, error) {
	t := c.Turn
	p, err := writable(t, name)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	defer f.lock(p.Path())()
	text, st, err := f.text(t, name)
	if was := c.Shown; was != "" && (err == nil && was != stateOf([]byte(text)) || errors.Is(err, fs.ErrNotExist) && was != absent) {
		return 0, errShown
	}
	if errors.Is(err, fs.ErrNotExist) && *in.Old == "" {
		if err := room(ctx, t, name, true, int64(len(*in.New))); err != nil {
			return 0, err
		}
		return 0, f.replace(t, p, name, []byte(*in.New), nil)
	}
	if err != nil {
		return 0, err
	}
	changed, n, err := substitute(text, *in.Old, *in.New, in.All)
	if err == nil {
		err = room(ctx, t, name, false, grows(st, len(changed)))
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return 0, err
	}
	read, same := f.seen.knows(t, name, st)
	if err := f.replace(t, p, name, []byte(changed), st); err != nil {
		return 0, err
	}
	if !read || !same { // what is around the change was never seen
		f.seen.forget(t, name)
	}
	return n, nil
}

// text returns the whole of a text file, as it is.
func (f *files) text(t *tool.Turn, name string) (string, fs.FileInfo, error) {
	file, st, err := f.openFile(t, name)
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	data, err := whole(file, st, maxEdit, "file")
	if err != nil && core.KindOf(err) == core.Other {
		return "", nil, fmt.Errorf("read for edit: %w", err)
	}
	if err == nil && place.Binary(data) {
		err = core.Errorf(core.Invalid, "it is a binary file")
	}
	return string(data), st, err
}

// substitute replaces old by new in text. Where text ends its lines by CRLF, so
// do old and new, whatever the model wrote; nothing else changes.
func substitute(text, old, new string, all bool) (string, int, error) {
	if old == "" {
		if text == "" {
			return new, 1, nil
		}
		return "", 0, core.Errorf(core.Invalid, "the file exists and is not empty; name in old_string the text to replace")
	}
	old, new = endings(text, old, new)
	n := strings.Count(text, old)
	switch {
	case n == 0:
		return "", 0, core.Errorf(core.Invalid, "old_string is not in the file. %s", hint(text, old))
	case n > 1 && !all:
		return "", 0, core.Errorf(core.Invalid, "old_string occurs in %d places (lines %s). Add text around it until it is unique, or set replace_all", n, places(text, old))
	}
	if size := int64(len(text)) + int64(n)*int64(len(new)-len(old)); size > maxEdit {
		return "", 0, core.Errorf(core.TooLarge, "the file would grow to %d bytes, and at most %d are written", size, maxEdit)
	}
	return strings.ReplaceAll(text, old, new), n, nil
}

// endings gives old and new the line ends of text, or of the one place that is
// meant where text mixes both.
func endings(text, old, new string) (string, string) {
	crlf := strings.Count(text, "\r\n")*2 > strings.Count(text, "\n")
	as, is := strings.Contains(text, toCRLF(old)), strings.Contains(text, old)
	if as && (crlf || !is) || crlf && !is {
		return toCRLF(old), toCRLF(new)
	}
	return old, new
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// places returns the lines where old begins, the first five.
func places(text, old string) string {
	var lines []string
	for line, from := 1, 0; ; {
		i := strings.Index(text[from:], old)
		if i < 0 {
			return strings.Join(lines, ", ")
		}
		if len(lines) == 5 {
			return strings.Join(lines, ", ") + ", …"
		}
		line += strings.Count(text[from:from+i], "\n")
		lines = append(lines, strconv.Itoa(line))
		line += strings.Count(old, "\n")
		from += i + len(old)
	}
}

var lineNumber = regexp.MustCompile(`(?m)^\s*\d+\t`)

// hint reports what may be wrong with a text that was not found.
func hint(text, old string) string {
	if lineNumber.MatchString(old) && strings.Contains(text, strings.TrimSpace(lineNumber.ReplaceAllString(old, ""))) {
		return "Leave out the line numbers that Read shows"
	}
	first := ""
	for line := range strings.Lines(old) {
		if first = strings.TrimSpace(line); first != "" {
			break
		}
	}
	n, found := 0, []string{}
	for line := range strings.Lines(text) {
		n++
		if first != "" && strings.TrimSpace(line) == first && len(found) < 3 {
			found = append(found, strconv.Itoa(n))
		}
	}
	if len(found) > 0 {
		return fmt.Sprintf("Its first line is like line %s: look at blanks, tabs and what follows, and Read the file again", strings.Join(found, ", "))
	}
	return "Read the file again: the text must be the same to the last blank"
}
