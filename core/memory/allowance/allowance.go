// Package allowance counts the tokens that the memory uses in a day for what no one waits
// for.
package allowance

import (
	"context"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// key is the key of the metadata with a day and the tokens that were used on it.
const key = "memory_budget"

// A Day is the allowance of each day (UTC), one for all parts of the memory together. It is
// safe for concurrent use.
type Day struct {
	DB     *store.DB
	Clock  core.Clock
	Tokens func() int64 // 0: none
}

// Left returns the tokens that are left today, at least 0.
func (d Day) Left(ctx context.Context) (int64, error) {
	all := d.Tokens()
	if all <= 0 {
		return 0, nil
	}
	used, err := d.used(ctx, d.DB)
	return max(0, all-used), err
}

// Spend notes that tokens were used.
func (d Day) Spend(ctx context.Context, tokens int64) error {
	if tokens <= 0 {
		return nil
	}
	return d.DB.Tx(ctx, func(tx *store.Tx) error {
		used, err := d.used(ctx, tx)
		if err != nil {
			return err
		}
		return store.SetMetadata(ctx, tx, key, d.today()+" "+strconv.FormatInt(used+tokens, 10))
	})
}

func (d Day) used(ctx context.Context, q store.Queryer) (int64, error) {
	text, _, err := store.Metadata(ctx, q, key)
	day, tokens, _ := strings.Cut(text, " ")
	if err != nil || day != d.today() {
		return 0, err
	}
	n, _ := strconv.ParseInt(tokens, 10, 64)
	return n, nil
}

func (d Day) today() string { return d.Clock.Now().UTC().Format(time.DateOnly) }
