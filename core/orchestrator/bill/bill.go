// Package bill collects what the model calls of one run take: it reserves each call in the
// budgets before it is made, and has the rows to record when the run has ended.
package bill

import (
	"context"
	"slices"
	"sync"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// A Bill is that of one run. It is safe for concurrent use.
type Bill struct {
	Of      usage.Row // the run, session, user and bot of each row
	Cost    func(model string, u core.Tokens) (int64, bool)
	Reserve func(ctx context.Context, r usage.Row) (id int64, notice string, err error) // nil: no budgets
	Ledger  *usage.Ledger

	mu    sync.Mutex
	spent []usage.Row // to be recorded
	paid  []usage.Row // recorded already
	// What the calls so far took beyond what was reserved for them: the next
	// reservation takes it on, as they are settled only when the run has ended.
	owed, owedUSD int64
	held          map[int64]usage.Row // what the reservation of each call under way has set aside, by its id
}

// expectedOutput is how many tokens an answer is reserved with: most are
// shorter, and what it really took is settled after it.
const expectedOutput = 1000

// Ask reserves a call of a model in the budgets, and returns the reservation for Add. It takes the
// place of the reservation instead, unless that is the zero Row. A budget without room is core.Busy, and leaves
// instead as it is; notice is a text for the user.
func (b *Bill) Ask(ctx context.Context, model string, req *llm.Request, instead usage.Row) (row usage.Row, notice string, err error) {
	row = b.row(model)
	if b.Reserve == nil {
		return row, "", nil
	}
	row.Input, row.Output = int64(Size(req)/4), int64(min(expectedOutput, req.MaxTokens))
	expected := core.Tokens{Input: row.Input, Output: row.Output}
	if req.Search != nil {
		expected.Searches = 1
	}
	if c, ok := b.Cost(model, expected); ok {
		row.MicroUSD = &c
	}
	aside := row
	aside.ID = instead.ID
	b.mu.Lock()
	owed, owedUSD := b.owed, b.owedUSD
	if was, ok := b.held[instead.ID]; ok {
		owed, owedUSD = owed+was.Input+was.Output, owedUSD+usdOf(was)
	}
	aside.Output += max(0, owed)
	if row.MicroUSD != nil {
		usd := *row.MicroUSD + max(0, owedUSD)
		aside.MicroUSD = &usd
	}
	b.mu.Unlock()
	id, notice, err := b.Reserve(ctx, aside)
	if core.KindOf(err) == core.Busy {
		return row, "", err
	}
	if row.ID, aside.ID = id, id; err != nil || id == 0 {
		return row, notice, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if was, ok := b.held[instead.ID]; ok {
		b.owe(&was, 1)
		delete(b.held, instead.ID)
	}
	b.owe(&aside, -1)
	if b.held == nil {
		b.held = map[int64]usage.Row{}
	}
	b.held[id] = aside
	return row, notice, nil
}

func usdOf(r usage.Row) int64 {
	if r.MicroUSD == nil {
		return 0
	}
	return *r.MicroUSD
}

// Add notes what one call of a model took, against its reservation, and returns the row.
// Where the provider did not report u, the reservation stays. usd, if not nil, replaces
// the price.
func (b *Bill) Add(model string, u *core.Tokens, usd *int64, reserved usage.Row) usage.Row {
	row := b.row(model)
	row.ID = reserved.ID
	if u == nil {
		u = &core.Tokens{}
		if reserved.ID != 0 {
			u.Input, u.Output = reserved.Input, reserved.Output
		}
	}
	row.Input, row.Output, row.CacheRead, row.CacheWrite = u.Input, u.Output, u.CacheRead, u.CacheWrite
	if c, ok := b.Cost(model, *u); ok && (u.Input+u.Output+u.CacheRead+u.CacheWrite+u.Searches > 0) {
		row.MicroUSD = &c
	}
	if usd != nil {
		row.MicroUSD = usd
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = append(b.spent, row)
	b.owe(&row, 1)
	delete(b.held, row.ID)
	return row
}

// owe notes that row was taken (1) or set aside (-1); b.mu is held.
func (b *Bill) owe(row *usage.Row, sign int64) {
	if row.ID == 0 {
		return
	}
	b.owed += sign * (row.Input + row.Output + row.CacheRead + row.CacheWrite)
	b.owedUSD += sign * usdOf(*row)
}

func (b *Bill) row(model string) usage.Row {
	row := b.Of
	row.Model = model
	return row
}

// Recorded adds the total of an earlier attempt, which is recorded already.
func (b *Bill) Recorded(model string, t Total) {
	row := b.row(model)
	row.Input, row.Output, row.CacheRead, row.CacheWrite, row.MicroUSD = t.Input, t.Output, t.CacheRead, t.CacheWrite, t.MicroUSD
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid = append(b.paid, row)
}

// Open returns the rows that are to be recorded.
func (b *Bill) Open() []usage.Row {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.spent)
}

// Total returns the sum of all calls, recorded or not.
func (b *Bill) Total() Total {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Sum(slices.Concat(b.spent, b.paid))
}

// Record records rows of Open in tx. They are no longer open once it has committed.
func (b *Bill) Record(ctx context.Context, tx *store.Tx, rows []usage.Row) error {
	for _, row := range rows {
		if err := b.Ledger.Record(ctx, tx, row); err != nil {
			return err
		}
	}
	tx.OnCommit(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, row := range rows {
			if i := slices.Index(b.spent, row); i >= 0 {
				b.spent, b.paid = slices.Delete(b.spent, i, i+1), append(b.paid, row)
			}
		}
	})
	return nil
}

// A Total is the sum of calls.
type Total struct {
	core.Tokens
	MicroUSD *int64 // nil: the price of a call is not known, or there is none
}

// Sum returns the sum of rows.
func Sum(rows []usage.Row) (t Total) {
	priced, usd := len(rows) > 0, int64(0)
	for _, row := range rows {
		t.Input += row.Input
		t.Output += row.Output
		t.CacheRead += row.CacheRead
		t.CacheWrite += row.CacheWrite
		if row.MicroUSD == nil {
			priced = false
			continue
		}
		usd += *row.MicroUSD
	}
	if priced {
		t.MicroUSD = &usd
	}
	return t
}

// Size returns the approximate size of a request in bytes.
func Size(req *llm.Request) int {
	n := len(req.System)
	for _, x := range req.Tools {
		n += len(x.Name) + len(x.About) + len(x.Schema)
	}
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			n += len(b.Text) + len(b.Input) + len(b.Name)
			for range b.Media {
				n += 6000 // about 1,500 tokens a picture
			}
		}
	}
	return n
}
