package mcp

import (
	"bytes"
	"net/http"
	"slices"
	"testing"
)

// The events of a stream are the same in whatever pieces it comes, and none waits for the next.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(": open\n\nid: 1\ndata: {\"type\":\"session\"}\n\ndata: a\ndata: b\n\n\n\ndata:"), 9)
	f.Add([]byte("\n\n\ndata: \n\ndata: x\n\n"), 1)
	f.Fuzz(func(t *testing.T, all []byte, size int) {
		all = all[:min(len(all), 4<<10)] // pieces of a byte are read again with each
		read := func(size int) (got []string, rest []byte) {
			p := &reply{header: http.Header{"Content-Type": {"text/event-stream"}}, most: maxAnswer, event: func(data []byte) { got = append(got, string(data)) }}
			for piece := range slices.Chunk(all, size) {
				if n, err := p.Write(piece); n != len(piece) || err != nil {
					t.Fatal(n, err)
				}
			}
			return got, p.body
		}
		whole, rest := read(max(len(all), 1))
		if bytes.Contains(rest, []byte("\n\n")) || !bytes.HasSuffix(all, rest) {
			t.Errorf("left of %q: %q", all, rest)
		}
		if got, left := read(1 + int(uint(size)%64)); !slices.Equal(got, whole) || !bytes.Equal(left, rest) {
			t.Errorf("%q in pieces: %q and %q left, want %q and %q", all, got, left, whole, rest)
		}
	})
}
