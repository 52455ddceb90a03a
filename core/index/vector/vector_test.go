package vector_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/index/vector"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func all(uint64) bool { return true }

// clustered returns n vectors around as many centres as there are tens of them: those of
// one centre are near each other, as texts of one subject are.
func clustered(n, dimensions int) [][]float32 {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([][]float32, n)
	var centre []float32
	for i := range out {
		v := make([]float32, dimensions)
		for k := range v {
			v[k] = float32(r.NormFloat64())
		}
		if i%10 == 0 {
			centre = v
		}
		for k := range v {
			v[k] = v[k]*0.7 + centre[k]
		}
		out[i], _ = vector.Normal(v)
	}
	return out
}

func put(t testing.TB, db *store.DB, model int64, entries ...vector.Entry) {
	t.Helper()
	for part := range slices.Chunk(entries, 100) {
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return vector.Put(t.Context(), tx, model, part) }); err != nil {
			t.Fatal(err)
		}
	}
}

func near(t testing.TB, db *store.DB, s vector.Search) []int64 {
	t.Helper()
	list, err := vector.Near(t.Context(), db, s)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestNear_HasNearlyAllOfTheNearestAmongItsCandidates(t *testing.T) {
	for _, dimensions := range []int{50, 384, 1100} {
		t.Run(fmt.Sprint(dimensions), func(t *testing.T) {
			db := storetest.Open(t, coretest.NewClock(time.Time{}))
			vectors := clustered(1000, dimensions)
			var entries []vector.Entry
			var encoded [][]byte
			for i, v := range vectors {
				entries, encoded = append(entries, vector.Entry{N: int64(i + 1), Vector: v}), append(encoded, vector.Encode(v))
			}
			put(t, db, 1, entries...)
			found, of := 0, 0
			for i := 0; i < len(vectors); i += 50 {
				candidates := near(t, db, vector.Search{Model: 1, Vector: vectors[i], May: all, Most: 100})
				if len(candidates) != 100 || candidates[0] != int64(i+1) {
					t.Fatalf("%d candidates, the first is %d, want the vector itself, %d", len(candidates), candidates[0], i+1)
				}
				order, like := make([]int, len(vectors)), make([]float64, len(vectors))
				for k := range order {
					order[k], like[k] = k, vector.Similarity(vectors[i], encoded[k])
				}
				slices.SortFunc(order, func(a, b int) int { return cmp.Compare(like[b], like[a]) })
				for _, k := range order[:10] {
					if of++; slices.Contains(candidates, int64(k+1)) {
						found++
					}
				}
			}
			if share := float64(found) / float64(of); share < 0.97 {
				t.Errorf("the candidates have %.3f of the ten nearest", share)
			}
		})
	}
}

func TestNear_IsRestrictedBeforeItChooses(t *testing.T) {
	db := storetest.Open(t, coretest.NewClock(time.Time{}))
	vectors := clustered(1000, 64)
	var entries []vector.Entry
	for i, v := range vectors {
		entries = append(entries, vector.Entry{N: int64(i), Key: uint64(i % 3), Vector: v})
	}
	put(t, db, 1, entries...)
	for _, n := range near(t, db, vector.Search{Model: 1, Vector: vectors[0], May: func(key uint64) bool { return key == 2 }, Most: 300}) {
		if n%3 != 2 {
			t.Fatalf("chunk %d has another key", n)
		}
	}
	if n := len(near(t, db, vector.Search{Model: 1, Vector: vectors[0], May: func(key uint64) bool { return key == 2 }, Most: 500})); n != 333 {
		t.Errorf("%d chunks have the key, want 333", n)
	}
	only := []int64{3, 255, 256, 700, 999, 5000}
	got := near(t, db, vector.Search{Model: 1, Vector: vectors[0], May: all, Only: only, Most: 10})
	slices.Sort(got)
	if !slices.Equal(got, only[:5]) {
		t.Errorf("of %v it chooses %v", only, got)
	}
	if got := near(t, db, vector.Search{Model: 1, Vector: vectors[0], May: all, Only: []int64{}, Most: 10}); got != nil {
		t.Errorf("of none it chooses %v", got)
	}
	if got := near(t, db, vector.Search{Model: 2, Vector: vectors[0], May: all, Most: 10}); got != nil {
		t.Errorf("of another model it chooses %v", got)
	}
	for n := range int64(900) { // equally near: the choice is bounded all the same
		put(t, db, 3, vector.Entry{N: n, Vector: vectors[0]})
	}
	if got := near(t, db, vector.Search{Model: 3, Vector: vectors[0], May: all, Most: 10}); len(got) != 10 {
		t.Errorf("of 900 equally near ones it chooses %d, want 10", len(got))
	}
}

func TestDrop_LeavesNothingOfAVector(t *testing.T) {
	db := storetest.Open(t, coretest.NewClock(time.Time{}))
	v := clustered(3, 64)
	put(t, db, 1, vector.Entry{N: 1, Vector: v[0]}, vector.Entry{N: 2, Key: 5, Vector: v[1]}, vector.Entry{N: 400, Vector: v[2]})
	before := slots(t, db)
	put(t, db, 1, vector.Entry{N: 7, Key: 5, Vector: v[2]})
	drop(t, db, 7)
	if got := slots(t, db); got != before {
		t.Error("a vector that was removed is still in its block")
	}
	drop(t, db, 1, 2, 400, 401)
	if got := slots(t, db); got != "" {
		t.Errorf("%d bytes are left", len(got))
	}
	put(t, db, 1, vector.Entry{N: 1, Vector: v[0]})
	put(t, db, 2, vector.Entry{N: 1, Vector: v[0]})
	clearAll := func(except int64) {
		t.Helper()
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { _, err := vector.Clear(t.Context(), tx, except, 10); return err }); err != nil {
			t.Fatal(err)
		}
	}
	clearAll(2)
	if got := near(t, db, vector.Search{Model: 2, Vector: v[0], May: all, Most: 1}); len(got) != 1 {
		t.Error("the vectors of the model to keep are gone")
	}
	clearAll(0)
	if got := slots(t, db); got != "" {
		t.Errorf("%d bytes are left", len(got))
	}
}

func drop(t *testing.T, db *store.DB, chunks ...int64) {
	t.Helper()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return vector.Drop(t.Context(), tx, chunks) }); err != nil {
		t.Fatal(err)
	}
}

func slots(t *testing.T, db *store.DB) (all string) {
	t.Helper()
	var list [][]byte
	if err := db.Select(t.Context(), &list, `SELECT slots FROM chunk_signs ORDER BY model, block`); err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		all += string(s)
	}
	return all
}

func TestNormal_RefusesWhatHasNoDirection(t *testing.T) {
	for _, v := range [][]float32{nil, {0, 0}, {float32(math.NaN()), 1}, {float32(math.Inf(1)), 1}} {
		if _, ok := vector.Normal(v); ok {
			t.Errorf("%v is taken", v)
		}
	}
	v, ok := vector.Normal([]float32{3, 4})
	if got, err := vector.Decode(vector.Encode(v)); !ok || err != nil || got[0] != 0.6 || got[1] != 0.8 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := vector.Decode([]byte{1, 2, 3}); err == nil {
		t.Error("a damaged vector is taken")
	}
}

// BenchmarkNear measures the choice of 600 among 100,000 vectors of 384 dimensions, in
// time and in processor time: the former depends on what else the machine does.
func BenchmarkNear(b *testing.B) {
	const n = 100_000
	db := storetest.Open(b, core.System{})
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []float32 {
		v := make([]float32, 384)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		v, _ = vector.Normal(v)
		return v
	}
	for from := 0; from < n; from += 256 {
		var entries []vector.Entry
		for i := range min(256, n-from) {
			entries = append(entries, vector.Entry{N: int64(from + i), Vector: random()})
		}
		put(b, db, 1, entries...)
	}
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	var took []time.Duration
	before := spent()
	for b.Loop() {
		at := time.Now()
		near(b, db, vector.Search{Model: 1, Vector: random(), May: all, Most: 600})
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(ms(spent()-before)/float64(len(took)), "processor-ms/op")
}
