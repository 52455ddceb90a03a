package document_test

import (
	"fmt"
	"slices"
	"testing"

	"gatehouse/core"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
)

// fill indexes documents with passages of a text in a directory.
func (x *index) fill(dir string, documents, passages int, text string) {
	x.t.Helper()
	for i := range documents {
		d := document.Document{File: document.File{Path: fmt.Sprintf("%s/%05d.md", dir, i), Modified: morning, Hash: "h"}, Title: "x"}
		for k := range passages {
			d.Chunks = append(d.Chunks, chunk.Chunk{Text: fmt.Sprintf("%s %d", text, k), Line: k + 1})
		}
		x.keep(d)
	}
}

// What a guest finds by meaning does not depend on what they may not read: that would
// tell them what is in it.
func TestFind_WhatAGuestFindsByMeaningDependsOnNothingTheyMayNotRead(t *testing.T) {
	x := open(t)
	x.fill("Guests/7", 26, 100, "garden gardens gardening gardener") // more than the candidates, and nearer than what is wanted
	x.put("Guests/7/wanted.md", "acme corp invoice about one garden and other unrelated things like boats trains and planes")
	x.put("Guests/7/old.md", "gardens and boats")
	x.embed(1)
	guest := search.Reader{User: 7, Trust: core.Sandboxed, MayRead: everything}
	queries := []string{`gardens "acme corp"`, `gardens -gardener`, `gardens in:Guests -gardener`, `gardens in:Guests`}
	ask := func() (out [][]string) {
		for _, q := range queries {
			out = append(out, x.near(guest, q))
		}
		return out
	}
	before := ask()
	for i, q := range queries {
		if len(before[i]) == 0 {
			t.Errorf("%s finds nothing", q)
		}
	}
	x.fill("Private", 101, 100, "acme corp secret") // more than are compared exactly
	for i, got := range ask() {
		if !slices.Equal(got, before[i]) {
			t.Errorf("%s: %v; before the owner wrote about it: %v", queries[i], got, before[i])
		}
	}
}
