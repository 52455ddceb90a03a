package shell

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestClaims_ExcludeAlongTheTree(t *testing.T) {
	for _, c := range []struct {
		held, area string
		waits      bool
		except     []string
	}{
		{"Guests/7", "Guests/7", true, nil},
		{"Guests/7", "Guests/8", false, nil},
		{"Guests/7", "Guests/70", false, nil},
		{".", ".", true, nil},
		{".", "Guests/7", true, nil},
		{"Guests/7", ".", false, []string{"Guests/7"}},
		{"Guests/7/a", "Guests/7", false, []string{"Guests/7/a"}},
	} {
		t.Run(c.held+" and then "+c.area, func(t *testing.T) {
			var a areas
			_, release, err := a.claim(t.Context(), c.held)
			if err != nil {
				t.Fatal(err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if !c.waits {
				ended = t.Context()
			}
			except, release2, err := a.claim(ended, c.area)
			if c.waits != errors.Is(err, context.Canceled) || !slices.Equal(except, c.except) {
				t.Fatalf("%v %v", except, err)
			}
			if err == nil {
				release2()
			}
			release()
			if len(a.held)+len(a.waiting) != 0 {
				t.Errorf("left: %v %v", a.held, a.waiting)
			}
		})
	}
}

func TestClaims_WhatIsLeftOutMayBeClaimedAgain(t *testing.T) {
	var a areas
	_, guest, err := a.claim(t.Context(), "Guests/7")
	if err != nil {
		t.Fatal(err)
	}
	_, owner, err := a.claim(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	guest()
	_, again, err := a.claim(t.Context(), "Guests/7")
	if err != nil {
		t.Fatal(err)
	}
	again()
	owner()
}

// TestClaims_NoOneWritesWhatAnotherWrites holds many claims at once and counts
// who may write each folder.
func TestClaims_NoOneWritesWhatAnotherWrites(t *testing.T) {
	folders := []string{".", "Guests/1", "Guests/2", "Guests/3"}
	var a areas
	var writers [4]atomic.Int32 // by folder: the vault without guests, and each guest
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range 2_000 {
				n := r.IntN(len(folders))
				except, release, err := a.claim(t.Context(), folders[n])
				if err != nil {
					t.Error(err)
					return
				}
				mine := []int{n}
				for k := 1; n == 0 && k < len(folders); k++ {
					if !slices.Contains(except, folders[k]) {
						mine = append(mine, k)
					}
				}
				for _, k := range mine {
					if writers[k].Add(1) != 1 {
						t.Errorf("two write %s", folders[k])
					}
				}
				for _, k := range mine {
					writers[k].Add(-1)
				}
				release()
			}
		})
	}
	all.Wait()
}

func TestLeaves(t *testing.T) {
	for _, c := range []struct {
		area, name, to string
		leaves         bool
	}{
		{"Guests/7", "Guests/7/l", "a", false},
		{"Guests/7", "Guests/7/l", "./a/b", false},
		{"Guests/7", "Guests/7/d/l", "../a", false},
		{"Guests/7", "Guests/7/l", "../7/a", true},
		{"Guests/7", "Guests/7/d/l", "../../a", true},
		{"Guests/7", "Guests/7/l", "a/../b", true}, // where a is a link it leads elsewhere
		{"Guests/7", "Guests/7/l", "/etc", true},
		{"Guests/7", "Guests/7/l", "", true},
		{".", "l", "a", false},
		{".", "l", "..", true},
		{".", "a/l", "../b", false},
		{".", "a/l", "../../b", true},
	} {
		if got := leaves(c.area, c.name, c.to); got != c.leaves {
			t.Errorf("leaves(%q, %q, %q) = %t", c.area, c.name, c.to, got)
		}
	}
}
