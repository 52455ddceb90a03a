package journal

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/paraid/entry"
	"gatehouse/core/store"
)

// Limits of a pass, so that no guest's files keep it from others.
const (
	maxNumbered  = 2000             // entries of a file that have ids; the others are only shown
	maxGuestIDs  = 50_000           // ids of a guest's entries
	guestsTime   = 10 * time.Second // for the journals of all guests; the next pass goes on with the others
	batch        = 500              // ids that are registered in one transaction
	forgottenFor = 60 * 24 * time.Hour
)

var errMany = core.Errorf(core.TooLarge, "the file has more than %d entries; those after them get no ids", maxNumbered)

// inBatches has do store n rows, some in each transaction, so that other writers get
// their turn.
func (s *Store) inBatches(ctx context.Context, n int, do func(tx *store.Tx, from, to int) error) error {
	for from := 0; from < n; from += batch {
		if err := s.o.DB.TxSoon(ctx, func(tx *store.Tx) error { return do(tx, from, min(from+batch, n)) }); err != nil {
			return err
		}
	}
	return nil
}

// mayAdd returns core.TooLarge if n more ids would be too many for a guest.
func (s *Store) mayAdd(ctx context.Context, user int64, n int) error {
	if user == core.Operator || n == 0 {
		return nil
	}
	have, err := s.o.Rows.Count(ctx, s.o.DB, user, entry.Journal)
	if err == nil && have+n > maxGuestIDs {
		err = core.Errorf(core.TooLarge, "the journal would have more than %d ids", maxGuestIDs)
	}
	return err
}

// numbered returns the sections that may have ids.
func (f *file) numbered() []section { return f.sections[:min(len(f.sections), maxNumbered)] }
