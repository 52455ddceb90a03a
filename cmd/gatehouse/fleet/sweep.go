package fleet

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"gatehouse/configs/live"
)

// SweepTokens deletes the token files that no bot of the stored settings names: what a crash
// left while a bot was added or removed. If the stored settings cannot be read, nothing is
// deleted. It logs what it deletes and what fails. Call it before the fleet is opened.
func SweepTokens(ctx context.Context, s *live.Settings, log *slog.Logger) {
	if err := sweepTokens(ctx, s, log); err != nil {
		log.Warn("tokens that no bot has could not be deleted", "err", err)
	}
}

func sweepTokens(ctx context.Context, s *live.Settings, log *slog.Logger) error {
	stored, err := s.Stored(ctx)
	if err != nil {
		return err
	}
	dir := s.Now().TokensDir()
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range files {
		if _, named := stored.Bots[f.Name()]; named || f.IsDir() {
			continue
		}
		gone := os.Remove(filepath.Join(dir, f.Name()))
		if gone == nil {
			log.Info("deleted a token that no bot has", "file", f.Name())
		}
		err = errors.Join(err, gone)
	}
	return err
}
