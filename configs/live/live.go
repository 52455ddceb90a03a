// Package live keeps the settings in effect: the configuration of environment
// and files, with what was changed in the panel while the gateway runs.
package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/store"
)

// Keys of the metadata table.
const (
	changesKey  = "setting:changes"   // configs.Changes as JSON
	logLevelKey = "setting:LOG_LEVEL" // a level's name
)

// Settings are the settings in effect. Methods may be called concurrently.
type Settings struct {
	given *configs.Config
	db    *store.DB
	log   *slog.Logger
	level *slog.LevelVar // of the log; nil: it has none that can be changed

	changing sync.Mutex // one change at a time
	now      atomic.Pointer[configs.Config]
}

// Open returns the settings of given with the stored changes. A change that is
// not valid any more is logged and left out, so that the gateway starts. level
// is the log's; nil leaves the log as it is.
func Open(ctx context.Context, given *configs.Config, db *store.DB, log *slog.Logger, level *slog.LevelVar) (*Settings, error) {
	s := &Settings{given: given, db: db, log: log, level: level}
	if err := s.ApplyLogLevel(ctx); err != nil {
		return nil, err
	}
	ch, err := readChanges(ctx, db)
	if err != nil {
		return nil, err
	}
	next, _, left := given.Holding(ch)
	for _, err := range left {
		log.Error("a value set in the panel is invalid; the configured one is used", "err", err)
	}
	s.now.Store(next)
	return s, nil
}

// Now returns the configuration in effect. The caller must not change it.
func (s *Settings) Now() *configs.Config { return s.now.Load() }

// Given returns the configuration without the panel's changes.
func (s *Settings) Given() *configs.Config { return s.given }

// Stored returns the panel's changes as they are stored, also those that are not valid any more.
func (s *Settings) Stored(ctx context.Context) (configs.Changes, error) {
	return readChanges(ctx, s.db)
}

// OwnText returns the text that a bot has in place of the catalogue's text of
// that name; "" if it has none.
func (s *Settings) OwnText(bot, name string) string { return s.Now().BotChanges()[bot].Texts[name] }

// Refresh calls apply with the settings in effect while no change of them is made.
func (s *Settings) Refresh(apply func(now *configs.Config) error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return apply(s.Now())
}

// A Change is one change of settings.
type Change struct {
	Action  string         // of the audit row; "": setting.change
	Subject string         // of the audit row
	Detail  map[string]any // of the audit row
	Edit    func(*configs.Changes)
	// Prepare checks next and returns a function that applies it once it is
	// stored; nil: nothing to apply. An error refuses the change.
	Prepare func(now, next *configs.Config) (apply func(), err error)
}

// Change makes one change: checked as a whole, stored, audited and in effect
// when it returns. Invalid: the settings would not be valid. An earlier change that is
// not valid any more stays stored and without effect, as at the start.
func (s *Settings) Change(ctx context.Context, by core.Actor, c Change) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	ch, next, err := s.next(ctx, c.Edit)
	if err != nil {
		return err
	}
	apply := func() {}
	if c.Prepare != nil {
		f, err := c.Prepare(s.Now(), next)
		if err != nil {
			return shown(err)
		}
		if f != nil {
			apply = f
		}
	}
	text, err := json.Marshal(ch)
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(store.SetMetadata(ctx, tx, changesKey, string(text)), store.Audit(ctx, tx, by, cmp.Or(c.Action, "setting.change"), c.Subject, c.Detail))
	})
	if err != nil {
		return err
	}
	s.now.Store(next)
	apply()
	return nil
}

// Try returns the configuration that a change would make effective.
func (s *Settings) Try(ctx context.Context, edit func(*configs.Changes)) (*configs.Config, error) {
	_, next, err := s.next(ctx, edit)
	return next, err
}

func (s *Settings) next(ctx context.Context, edit func(*configs.Changes)) (configs.Changes, *configs.Config, error) {
	was, err := readChanges(ctx, s.db)
	if err != nil {
		return was, nil, err
	}
	ch, err := readChanges(ctx, s.db) // edit may write into its maps
	if err != nil {
		return ch, nil, err
	}
	edit(&ch)
	next, err := s.given.With(ch)
	if err != nil { // by this change, or by one that was valid when it was stored
		_, kept, _ := s.given.Holding(was)
		next, err = s.given.With(ch.Without(was, kept))
	}
	if err != nil {
		return ch, nil, shown(err)
	}
	return ch, next, nil
}

// shown returns an error whose text users may read: errors of configs hold no
// secret.
func shown(err error) error {
	if core.KindOf(err) == core.Other {
		return core.Errorf(core.Invalid, "%s", err.Error())
	}
	return err
}

func readChanges(ctx context.Context, q store.Queryer) (configs.Changes, error) {
	ch := configs.Changes{Settings: map[string]string{}, Bots: map[string]configs.BotChange{}}
	text, set, err := store.Metadata(ctx, q, changesKey)
	if err != nil || !set {
		return ch, err
	}
	if err := json.Unmarshal([]byte(text), &ch); err != nil {
		return ch, fmt.Errorf("what the panel has set: %w", err)
	}
	if ch.Settings == nil {
		ch.Settings = map[string]string{}
	}
	if ch.Bots == nil {
		ch.Bots = map[string]configs.BotChange{}
	}
	return ch, nil
}
