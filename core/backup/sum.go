package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// SumSuffix is what the name of a checksum's file adds to the backup's.
const SumSuffix = ".sha256"

// WriteSum writes the SHA-256 of file into the file with SumSuffix, as sha256sum
// writes and checks it.
func WriteSum(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, &reader{ctx: ctx, r: f, count: new(counter)}); err != nil {
		return err
	}
	line := hex.EncodeToString(sum.Sum(nil)) + "  " + filepath.Base(file) + "\n"
	return os.WriteFile(file+SumSuffix, []byte(line), 0o600)
}

// ReadSum returns the hexadecimal checksum that WriteSum wrote for file, or ""
// where there is none.
func ReadSum(file string) string {
	f, err := os.Open(file + SumSuffix)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 2*sha256.Size))
	if _, bad := hex.DecodeString(string(b)); errors.Join(err, bad) != nil || len(b) != 2*sha256.Size {
		return ""
	}
	return string(b)
}
