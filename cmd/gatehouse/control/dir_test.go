package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/control"
)

func TestARuntimeFolderOfOursIsClosedToOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := control.MakeDir(dir); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// A command of the terminal does not talk to whoever made the folder first.
func TestNoCommandTalksToASquattedSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := control.Dial(dir).Get(t.Context(), "/control/limits", nil); err == nil || errors.Is(err, control.ErrNotServing) || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
	if err := control.Dial(dir+"2").Get(t.Context(), "/control/limits", nil); !errors.Is(err, control.ErrNotServing) {
		t.Error(err)
	}
}
