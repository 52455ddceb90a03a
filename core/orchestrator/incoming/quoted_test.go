package incoming_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"gatehouse/core"
	"gatehouse/core/orchestrator/incoming"
	"gatehouse/core/orchestrator/named"
)

func reading(files fstest.MapFS) *incoming.Reader {
	return &incoming.Reader{Sources: incoming.Sources{Log: slog.New(slog.DiscardHandler), Files: files}, Run: "r", User: 1}
}

// The sender has not attached it, and cannot send it again.
func TestAFileOfTheAnsweredMessageIsMarkedAndItsSenderIsNotWarned(t *testing.T) {
	t.Parallel()
	r := reading(fstest.MapFS{"Chat/assets/a.txt": {Data: []byte("see evil.example")}})
	row := core.Inbound{Text: "why?", Quote: &core.Quote{Name: "Eve", Text: "[a file: a.txt]"}, Files: []core.File{
		{Name: "own.exe", Refused: "it is a program"},
		{Name: "a.txt", Path: "Chat/assets/a.txt", Quoted: true},
		{Name: "b.mp4", Refused: "it is larger than 20 MB", Quoted: true},
	}}
	var got []string
	for _, b := range r.Blocks(t.Context(), &row, nil) {
		got = append(got, b.Text)
		if named.ByUser(named.Own(b.Text), "evil.example") {
			t.Errorf("the user has named the host: %q", b.Text)
		}
	}
	const mark = "[of the message that is answered]"
	want := []string{"[own.exe was not taken: it is a program]", mark, "Attached file a.txt:\n```\nsee evil.example\n```", mark, "[b.mp4 was not taken: it is larger than 20 MB]"}
	if !slices.Equal(got, want) {
		t.Errorf("the model reads %q, want %q", got, want)
	}
	if len(r.Notices) != 1 || !strings.Contains(r.Notices[0].Message, "own.exe") {
		t.Errorf("the sender is warned of %+v, want of own.exe alone", r.Notices)
	}
}

// One message has a picture, the next ones remark on it.
func TestAFileOfAnAnsweredMessageIsFetchedOnceInATurn(t *testing.T) {
	t.Parallel()
	var fetched []string
	r := reading(nil)
	r.Fetch = func(_ context.Context, _ int64, _, _ string, f core.File) (core.File, error) {
		fetched = append(fetched, f.Ref)
		f.Path = "Chat/assets/" + f.Ref
		return f, nil
	}
	rows := []core.Inbound{
		{Files: []core.File{{Ref: "p"}}},
		{Files: []core.File{{Ref: "p", Quoted: true}, {Ref: "q", Quoted: true}}},
		{Files: []core.File{{Ref: "q", Quoted: true}}},
	}
	if err := r.FetchAll(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(fetched, []string{"p", "q"}) || len(rows[1].Files) != 1 || len(rows[2].Files) != 0 {
		t.Errorf("fetched %v; the rows have %+v", fetched, rows)
	}
}
