package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// readAll reads all events of s through r.
func readAll(r io.Reader) (events []string, err error) {
	e := NewEvents(r)
	for {
		data, err := e.Next()
		if err != nil {
			return events, err
		}
		events = append(events, string(data))
	}
}

func TestEventsFollowTheStandard(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"one", "data: a\n\n", "a"},
		{"no blank after the colon", "data:a\n\n", "a"},
		{"only one blank goes", "data:  a\n\n", " a"},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "a|b"},
		{"CR alone", "data: a\r\rdata: b\r\r", "a|b"},
		{"lines are joined", "data: a\ndata: b\n\n", "a\nb"},
		{"comments are keep-alives", ": OPENROUTER PROCESSING\n\ndata: a\n\n: x\n\n", "a"},
		{"other fields are skipped", "event: message\nid: 3\nretry: 5\ndata: a\n\n", "a"},
		{"many blank lines", "\n\n\ndata: a\n\n\n\n", "a"},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", "a"},
		{"an unfinished event is dropped", "data: a\n\ndata: b", "a"},
		{"an unfinished DONE counts", "data: a\n\ndata: [DONE]", "a|[DONE]"},
		{"an unfinished object counts when it is whole", "data: a\n\ndata: {\"b\":1}", `a|{"b":1}`},
		{"an object that is cut off is dropped", "data: a\n\ndata: {\"b\":", "a"},
		{"DONE with one newline counts", "data: a\n\ndata: [DONE]\n", "a|[DONE]"},
		{"llama.cpp's error field", "error: {\"code\":500}\n\n", `{"code":500}`},
		{"a bare object", "data: a\n\n{\"error\":\"x\"}\n\n", `a|{"error":"x"}`},
		{"an empty data line", "data\n\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, err := readAll(strings.NewReader(c.in))
			if got := strings.Join(events, "|"); got != c.want || !errors.Is(err, io.EOF) {
				t.Errorf("got %q, %v; want %q, EOF", got, err, c.want)
			}
		})
	}
}

func TestAnEventHasItsName(t *testing.T) {
	e := NewEvents(strings.NewReader("event: a\ndata: 1\n\ndata: 2\n\nevent: lost\n\ndata: 3\n\ndata: 4\nevent:b\n\n"))
	var names []string
	for {
		data, err := e.Next()
		if err != nil {
			break
		}
		names = append(names, string(data)+e.Name)
	}
	if want := []string{"1a", "2", "3", "4b"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestEventsAreBounded(t *testing.T) {
	long := "data: " + strings.Repeat("x", maxEvent) + "\n\n"
	if _, err := readAll(strings.NewReader(long)); !errors.Is(err, ErrEventTooLong) {
		t.Errorf("long line: %v", err)
	}
	lines := strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", maxEvent/1000+1)
	if _, err := readAll(strings.NewReader(lines)); !errors.Is(err, ErrEventTooLong) {
		t.Errorf("long event of short lines: %v", err)
	}
	endless := repeat("data: " + strings.Repeat("x", 1000) + "\n\n")
	if _, err := readAll(endless); !errors.Is(err, ErrStreamTooLong) {
		t.Errorf("endless stream: %v", err)
	}
	if _, err := readAll(repeat("zzzzzzzz")); !errors.Is(err, ErrEventTooLong) {
		t.Errorf("endless line: %v", err)
	}
}

// repeat gives s for ever.
type repeat string

func (r repeat) Read(p []byte) (int, error) { return copy(p, r), nil }

// chunked gives its bytes in random pieces.
type chunked struct {
	data []byte
	rand *rand.Rand
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.data[:1+c.rand.IntN(min(len(c.data), len(p)))])
	c.data = c.data[n:]
	return n, nil
}

// parseWhole is the standard read literally, over the whole text at once.
func parseWhole(in string) (events []string) {
	in = strings.TrimPrefix(in, "\xef\xbb\xbf")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(in, "\n")
	rest := lines[len(lines)-1] // not ended by a newline
	var data []string
	add := func(line string) {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "{"):
			data = append(data, line)
		case name == "data" || name == "error":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	for _, line := range lines[:len(lines)-1] {
		if line != "" {
			add(line)
		} else if data != nil {
			events, data = append(events, strings.Join(data, "\n")), nil
		}
	}
	add(rest)
	if last := []byte(strings.Join(data, "\n")); IsDone(last) || len(last) > 0 && last[0] == '{' && json.Valid(last) {
		events = append(events, string(last))
	}
	return events
}

// FuzzEvents: however the network cuts the stream, the events are those
// of the standard, and nothing panics.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\ndata: [DONE]\n\n", "data: a\r\rdata:b\r\n\r\n", ": c\n{\"error\":1}\n\n",
		"\xef\xbb\xbfdata\ndata:\n\n", "data: [DONE]", "data: x\r", "\r\n\r\n", "error: {}\n\n\n"} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		if len(in) > 64<<10 {
			return
		}
		want := parseWhole(string(in))
		got, err := readAll(&chunked{bytes.Clone(in), rand.New(rand.NewPCG(seed, 0))})
		if !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
			t.Errorf("events of %q: %q, %v; want %q", in, got, err, want)
		}
	})
}
