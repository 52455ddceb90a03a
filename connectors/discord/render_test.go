package discord

import (
	"testing"

	"gatehouse/connectors/connectorstest"
)

func TestAnAnswerOf10kBIsRenderedWithFewAllocations(t *testing.T) {
	connectorstest.Allocations(t, renderer(t))
}

func BenchmarkRender(b *testing.B) { connectorstest.Rendering(b, renderer(b)) }
