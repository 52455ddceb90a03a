package main

import (
	"debug/elf"
	"runtime"
	"strings"
	"testing"
)

// The file is most of what a gateway at rest has in memory (docs/performance.md). What
// makes it larger without need: a structure sorted by package slices (core.Sort), a
// field with a library's whole client, a dependency of which little is used.
func TestTheProgramsFileHasAtMost45MiB(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the goal is set for linux/amd64")
	}
	f, err := elf.Open(program(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := uint64(0)
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_SYMTAB && s.Name != ".strtab" && !strings.HasPrefix(s.Name, ".debug") {
			sum += s.FileSize // a release has these alone
		}
	}
	t.Logf("%.2f MiB without symbols", float64(sum)/(1<<20))
	if sum > 45<<20 {
		t.Errorf("the program's file has %.2f MiB without symbols, want at most 45", float64(sum)/(1<<20))
	}
	if sum < 10<<20 {
		t.Errorf("the program's file has %d bytes: its sections were not found", sum)
	}
}
