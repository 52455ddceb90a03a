package hearing

import (
	"bytes"
	"context"
	"io"

	"gatehouse/core"
)

// HearData is Hear for a recording that is in no file. The ending of name is that of its
// format.
func (h *Hearer) HearData(ctx context.Context, user int64, name string, data []byte) (string, error) {
	of := *h // with the same bounds
	of.o.Open = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return of.Hear(ctx, user, core.File{Path: name, Name: name}, nil)
}
