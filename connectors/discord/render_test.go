package discord

import (
	"testing"

	"gatehouse/connectors/connectorstest"
)

func renderer(t testing.TB) *Bot {
	t.Helper()
	b, err := New(Options{Name: "bot", Token: testToken, Cursors: &connectorstest.Store{}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAnAnswerOf10kBIsRenderedWithFewAllocations(t *testing.T) {
	connectorstest.Allocations(t, renderer(t))
}

func BenchmarkRender(b *testing.B) { connectorstest.Rendering(b, renderer(b)) }
