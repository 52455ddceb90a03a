package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

// absent is the state of a file that does not exist.
const absent = "absent"

// errShown: the file is not what the user was shown who approved the call.
var errShown = core.Errorf(core.Conflict, "the file changed after this call was shown for approval, so nothing was written; Read it again and repeat the call")

// stateOf identifies the content of a file.
func stateOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// stateBySize identifies a file that is too large to be read as a whole.
func stateBySize(st fs.FileInfo) string {
	return fmt.Sprintf("size:%d at %d", st.Size(), st.ModTime().UnixNano())
}

// changeWrite returns what a Write would change.
func (f *files) changeWrite(_ context.Context, c *tool.Call) (tool.Change, error) {
	in, err := decodeWrite(c.Input)
	if err != nil {
		return tool.Change{}, err
	}
	before, state, err := f.present(c, in.Path)
	return tool.Change{Before: before, After: *in.Content, State: state}, err
}

// changeEdit returns what an Edit would change.
func (f *files) changeEdit(_ context.Context, c *tool.Call) (tool.Change, error) {
	in, err := decodeEdit(c.Input)
	if err != nil {
		return tool.Change{}, err
	}
	before, state, err := f.present(c, in.Path)
	switch {
	case err != nil:
		return tool.Change{State: state}, err
	case before == nil && *in.Old == "":
		return tool.Change{After: *in.New, State: state}, nil
	case before == nil:
		return tool.Change{State: state}, core.Errorf(core.NotFound, "the file does not exist: the call would fail")
	case place.Binary([]byte(*before)):
		return tool.Change{State: state}, core.Errorf(core.Invalid, "it is a binary file: the call would fail")
	}
	after, _, err := substitute(*before, *in.Old, *in.New, in.All)
	if err != nil {
		err = core.Errorf(core.Invalid, "the call would fail: %s", core.TextOf(err))
	}
	return tool.Change{Before: before, After: after, State: state}, err
}

// present returns the content of the call's file, nil where it does not exist, and its state.
func (f *files) present(c *tool.Call, path string) (text *string, state string, err error) {
	shown := place.Shown(c.Turn, path)
	name, err := place.Decided(c.Access.Write, shown)
	if err != nil {
		return nil, "", err
	}
	data, state, err := f.contents(c.Turn, name)
	if err != nil {
		return nil, state, place.Explain(shown, err)
	}
	if state == absent {
		return nil, state, nil
	}
	before := string(data)
	return &before, state, nil
}

// contents returns the content of a file and its state. The error of one that is too
// large comes with its state.
func (f *files) contents(t *tool.Turn, name string) (data []byte, state string, err error) {
	file, st, err := f.openFile(t, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent, nil
	}
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	if data, err = whole(file, st, maxEdit, "file"); err != nil {
		return nil, stateBySize(st), err
	}
	return data, stateOf(data), nil
}

// asShown returns an error unless the file name has the state that the call was
// approved with.
func (f *files) asShown(c *tool.Call, name string) error {
	if c.Shown == "" {
		return nil
	}
	_, state, err := f.contents(c.Turn, name)
	if state == "" && err != nil {
		return err
	}
	if state != c.Shown {
		return errShown
	}
	return nil
}
