package live

import (
	"context"
	"fmt"
	"log/slog"

	"gatehouse/core"
	"gatehouse/core/store"
)

// SetLogLevel changes the log's level and stores it; "" is as configured.
func (s *Settings) SetLogLevel(ctx context.Context, level string, by core.Actor) error {
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		if err := store.Audit(ctx, tx, by, "setting.change", "LOG_LEVEL", map[string]any{"value": level}); err != nil {
			return err
		}
		if level == "" {
			return store.DeleteMetadata(ctx, tx, logLevelKey)
		}
		return store.SetMetadata(ctx, tx, logLevelKey, level)
	})
	if err != nil {
		return err
	}
	return s.ApplyLogLevel(ctx)
}

// LogLevel returns the log's level; false if it cannot be changed.
func (s *Settings) LogLevel() (slog.Level, bool) {
	if s.level == nil {
		return 0, false
	}
	return s.level.Level(), true
}

// ApplyLogLevel gives the log the stored level, or the configured one.
func (s *Settings) ApplyLogLevel(ctx context.Context) error {
	if s.level == nil {
		return nil
	}
	level := s.given.LogLevel.Level()
	value, set, err := store.Metadata(ctx, s.db, logLevelKey)
	if err != nil {
		return fmt.Errorf("log level: %w", err)
	}
	if set {
		if err := level.UnmarshalText([]byte(value)); err != nil {
			s.log.Warn("the stored log level cannot be read; the configured one is used", "err", err)
			level = s.given.LogLevel.Level()
		}
	}
	s.level.Set(level)
	return nil
}
