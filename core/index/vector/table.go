package vector

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gatehouse/core/store"
)

// Layout of chunk_signs: a row has the slots of perBlock consecutive numbers; a slot is
// the owner's key plus one (zero: it is empty) and the signs.
const (
	perBlock = 1 << 8
	keyLen   = 8
	atOnce   = 16 // blocks that a search reads at a time: some 300 kB for 384 dimensions
)

// blockOf and slotOf return where a number, which may be negative, has its slot.
func blockOf(n int64) int64 { return n >> 8 }
func slotOf(n int64) int    { return int(n & (perBlock - 1)) }

// An Entry is a vector that is stored.
type Entry struct {
	N      int64     // of the chunk
	Key    uint64    // by which Near is restricted; less than the largest
	Vector []float32 // of length 1; all of one model have the same dimensions
}

// Put stores the signs of entries, in place of what the model's chunks have had.
func Put(ctx context.Context, tx *store.Tx, model int64, entries []Entry) error {
	blocks := map[int64][]Entry{} // at most one for each entry
	for _, e := range entries {
		blocks[blockOf(e.N)] = append(blocks[blockOf(e.N)], e)
	}
	for block, list := range blocks {
		var slots []byte
		err := tx.Get(ctx, &slots, `SELECT slots FROM chunk_signs WHERE model = $1 AND block = $2`+tx.ForUpdate(), model, block)
		if err != nil && !errors.Is(err, store.ErrNoRows) {
			return err
		}
		slot := keyLen + 8*words(len(list[0].Vector))
		if len(slots) != perBlock*slot {
			slots = make([]byte, perBlock*slot)
		}
		for _, e := range list {
			at := slots[slotOf(e.N)*slot:][:slot]
			binary.LittleEndian.PutUint64(at, e.Key+1)
			for i, w := range signs(e.Vector) {
				binary.LittleEndian.PutUint64(at[keyLen+8*i:], w)
			}
		}
		if _, err := tx.Exec(ctx, `INSERT INTO chunk_signs (model, block, slots) VALUES ($1, $2, $3)
			ON CONFLICT (model, block) DO UPDATE SET slots = excluded.slots`, model, block, slots); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes what is stored of chunks, of all models.
func Drop(ctx context.Context, tx *store.Tx, chunks []int64) error {
	blocks := map[int64][]int64{} // at most one for each chunk
	for _, n := range chunks {
		blocks[blockOf(n)] = append(blocks[blockOf(n)], n)
	}
	for block, list := range blocks {
		var rows []row
		if err := tx.Select(ctx, &rows, `SELECT model, block, slots FROM chunk_signs WHERE block = $1`+tx.ForUpdate(), block); err != nil {
			return err
		}
		for _, r := range rows {
			slot := len(r.Slots) / perBlock
			for _, n := range list {
				clear(r.Slots[slotOf(n)*slot:][:slot])
			}
			err := error(nil)
			if empty(r.Slots) {
				_, err = tx.Exec(ctx, `DELETE FROM chunk_signs WHERE model = $1 AND block = $2`, r.Model, r.Block)
			} else {
				_, err = tx.Exec(ctx, `UPDATE chunk_signs SET slots = $3 WHERE model = $1 AND block = $2`, r.Model, r.Block, r.Slots)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func empty(slots []byte) bool {
	return !slices.ContainsFunc(slots, func(b byte) bool { return b != 0 })
}

type row struct {
	Model int64  `db:"model"`
	Block int64  `db:"block"`
	Slots []byte `db:"slots"`
}

// Clear removes up to most blocks of all models but one, 0 for none, and returns how many.
func Clear(ctx context.Context, tx *store.Tx, except int64, most int) (int, error) {
	n, err := tx.Exec(ctx, fmt.Sprintf(`DELETE FROM chunk_signs WHERE (model, block) IN (SELECT model, block FROM chunk_signs WHERE model <> $1 LIMIT %d)`, most), except)
	return int(n), err
}

// A Search is which vectors Near chooses.
type Search struct {
	Model  int64
	Vector []float32
	May    func(key uint64) bool // those with these keys
	Only   []int64               // of these chunks, ascending; nil: of all
	Most   int                   // how many, at least 1
}

// Near returns the numbers of the chunks whose vectors are nearest, the nearest first.
// It reads all blocks, or those of s.Only; where they are many, on two connections.
func Near(ctx context.Context, db *store.DB, s Search) ([]int64, error) {
	if s.Only != nil && len(s.Only) == 0 {
		return nil, nil
	}
	c := newChoice(s)
	if s.Only != nil {
		for part := range slices.Chunk(blocksOf(s.Only), atOnce) {
			if _, err := c.read(ctx, db, `block IN (`+strings.Join(part, ",")+`)`); err != nil {
				return nil, err
			}
		}
		return c.best(), nil
	}
	rows, err := c.read(ctx, db, `block > $2`, int64(math.MinInt64))
	if err != nil || len(rows) < atOnce {
		return c.best(), err
	}
	first, last := rows[len(rows)-1].Block, int64(0)
	if err := db.Get(ctx, &last, `SELECT max(block) FROM chunk_signs WHERE model = $1`, s.Model); err != nil {
		return nil, fmt.Errorf("near vectors: %w", err)
	}
	middle, other := first+(last-first)/2, newChoice(s)
	var reading sync.WaitGroup
	var otherErr error
	reading.Go(func() { otherErr = other.between(ctx, db, middle, last) })
	err = c.between(ctx, db, first, middle)
	reading.Wait()
	c.list = append(c.list, other.list...)
	return c.best(), errors.Join(err, otherErr)
}

// between chooses among the slots of the blocks behind after, up to last.
func (c *choice) between(ctx context.Context, db *store.DB, after, last int64) error {
	for {
		rows, err := c.read(ctx, db, `block > $2 AND block <= $3`, after, last)
		if err != nil || len(rows) < atOnce {
			return err
		}
		after = rows[len(rows)-1].Block
	}
}

// read chooses among the slots of up to atOnce blocks.
func (c *choice) read(ctx context.Context, q store.Queryer, where string, args ...any) (rows []lent, err error) {
	err = q.Select(ctx, &rows, `SELECT block, slots FROM chunk_signs WHERE model = $1 AND `+where+` ORDER BY block LIMIT `+strconv.Itoa(atOnce), append([]any{c.s.Model}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("near vectors: %w", err)
	}
	for _, r := range rows {
		c.block(r.Block, r.Slots)
		buffers.Put(&r.Slots)
	}
	return rows, nil
}

// A lent is a row whose slots are in a buffer that others use after it.
type lent struct {
	Block int64  `db:"block"`
	Slots buffer `db:"slots"`
}

type buffer []byte

// buffers are for the blocks of a search: new ones for each would be some megabytes of
// garbage.
var buffers sync.Pool

// Scan implements sql.Scanner.
func (b *buffer) Scan(src any) error {
	raw, ok := src.([]byte)
	if !ok {
		return fmt.Errorf("signs of vectors are stored as %T", src)
	}
	if spare, ok := buffers.Get().(*buffer); ok {
		*b = *spare
	}
	*b = append((*b)[:0], raw...)
	return nil
}

// blocksOf returns the blocks of chunks, which are ascending.
func blocksOf(chunks []int64) (list []string) {
	last := int64(0)
	for _, n := range chunks {
		if b := blockOf(n); len(list) == 0 || b != last {
			list, last = append(list, strconv.FormatInt(b, 10)), b
		}
	}
	return list
}

// A choice is the nearest so far.
type choice struct {
	s     Search
	want  []uint64
	slot  int
	limit int // of differing signs: those with more are not among the nearest
	count []int
	list  []chosen // at most twice s.Most
}

type chosen struct {
	n      int64
	differ int
}

func newChoice(s Search) *choice {
	c := &choice{s: s, want: signs(s.Vector)}
	c.slot, c.limit = keyLen+8*len(c.want), 64*len(c.want)
	c.count = make([]int, c.limit+1)
	return c
}

// block chooses among the slots of a block.
func (c *choice) block(block int64, slots []byte) {
	if len(slots) != perBlock*c.slot {
		return // of a model that has changed its dimensions: it is made again
	}
	for i := range perBlock {
		at := slots[i*c.slot:][:c.slot]
		key := binary.LittleEndian.Uint64(at)
		if key == 0 || !c.s.May(key-1) {
			continue
		}
		d := differ(c.want, at[keyLen:])
		if d > c.limit {
			continue
		}
		n := block*perBlock + int64(i)
		if c.s.Only != nil {
			if _, ok := slices.BinarySearch(c.s.Only, n); !ok {
				continue
			}
		}
		c.count[d]++
		if c.list = append(c.list, chosen{n, d}); len(c.list) >= 2*c.s.Most {
			c.narrow()
		}
	}
}

// narrow lowers the limit so that about s.Most remain.
func (c *choice) narrow() {
	sum := 0
	for d, n := range c.count {
		if sum += n; sum >= c.s.Most {
			c.limit = d
			break
		}
	}
	clear(c.count[c.limit+1:])
	c.list = slices.DeleteFunc(c.list, func(x chosen) bool { return x.differ > c.limit })
	if len(c.list) >= 2*c.s.Most { // equally near
		c.list = c.sorted()
		c.limit--
	}
}

func (c *choice) sorted() []chosen {
	slices.SortFunc(c.list, func(a, b chosen) int { return cmp.Or(a.differ-b.differ, cmp.Compare(a.n, b.n)) })
	return c.list[:min(len(c.list), c.s.Most)]
}

func (c *choice) best() []int64 {
	var out []int64
	for _, x := range c.sorted() {
		out = append(out, x.n)
	}
	return out
}
