package store

import (
	"context"
	"log/slog"

	"gatehouse/core"
	"gatehouse/core/store/original"
)

// AdoptStepwise is the adoption alone; step is called before each statement
// and ends it with an error.
func AdoptStepwise(ctx context.Context, path string, clock core.Clock, step func(string) error) error {
	return adoption{path: path, clock: clock, log: slog.New(slog.DiscardHandler), step: step}.run(ctx)
}

// AdoptTime is one value of a column of times as an adoption writes it.
func AdoptTime(v any) string {
	s, _ := original.Time(v).(string)
	return s
}

// AuditScan is how many rows of the log one page looks at.
const AuditScan = auditScan

// AuditText is the part of a page that walks an index.
func AuditText(f AuditFilter) (string, []any, error) {
	l, err := f.query()
	if err != nil {
		return "", nil, err
	}
	return l.scan(auditScan), l.early, nil
}
