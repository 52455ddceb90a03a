package snapshot

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
)

// Peek reads one value of the metadata from the database's file without
// opening it as the gateway does: nothing is created, migrated or locked, and the
// gateway may be running. It returns "" without the key, the table or the file.
func Peek(ctx context.Context, path, key string) (string, error) {
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return "", nil
	} else if err != nil {
		return "", err
	}
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String()+"?mode=ro&_busy_timeout=5000")
	if err != nil {
		return "", err
	}
	defer db.Close()
	var there bool
	if err := db.QueryRowContext(ctx, `SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = 'metadata'`).Scan(&there); err != nil || !there {
		return "", peeked(err)
	}
	var value string
	err = db.QueryRowContext(ctx, `SELECT coalesce(value, '') FROM metadata WHERE key = ?`, key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, peeked(err)
}

func peeked(err error) error {
	if err != nil {
		return fmt.Errorf("look into the database: %w", err)
	}
	return nil
}
