package carry

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/store/migrations"
	"gatehouse/core/store/tenure"
)

// A digest identifies the content of a table on either engine.
type digest struct {
	rows int64
	sum  [sha256.Size]byte // of the rows in the order of their keys
}

func (d digest) short() string { return "sha256 " + hex.EncodeToString(d.sum[:6]) }

// A visitor gets each row, which it may keep, and about how many bytes it has.
type visitor func(row []any, size int) error

// read calls visit for each row of the table in the order of the keys.
func (s *Side) read(ctx context.Context, q conn, t table, visit visitor) (digest, error) {
	sum := &summer{hash: sha256.New()}
	each := func(row []any) error {
		size, err := sum.add(t, row)
		if err != nil {
			return err
		}
		return visit(row, size)
	}
	read := s.plain
	if t.words && s.engine == migrations.SQLite {
		read = indexed
	}
	err := read(ctx, q, t, each)
	return sum.digest(), err
}

// plain reads a table that has its values.
func (s *Side) plain(ctx context.Context, q conn, t table, each func(row []any) error) error {
	query, args := `SELECT `+t.names()+` FROM `+quote(t.name), []any(nil)
	if t.name == "metadata" {
		query, args = query+content, []any{Marker, tenure.Key}
	}
	var order []string
	for _, k := range t.key {
		order = append(order, quote(k))
	}
	rows, err := q.QueryContext(ctx, query+` ORDER BY `+strings.Join(order, ", "), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := t.scan(rows)
		if err != nil {
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scan reads a row as values of the columns' types.
func (t table) scan(rows *sql.Rows) ([]any, error) {
	row, to := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i := range row {
		to[i] = &row[i]
	}
	if err := rows.Scan(to...); err != nil {
		return nil, err
	}
	for i, c := range t.columns {
		v, ok := c.kind.value(row[i])
		if !ok {
			return nil, core.Errorf(core.Invalid, "column %s of row %s has a value of another type (%T) than %s: correct it in the database, and try again", c.name, t.keyOf(row), row[i], c.kind)
		}
		row[i] = v
		if s, ok := v.(string); ok && t.words {
			row[i] = strings.Trim(s, " ") // on PostgreSQL there are spaces around it
		}
	}
	return row, nil
}

// value returns what was read as int64, float64, string, []byte or nil. SQLite lets a column of text
// have bytes and the other way round.
func (k kind) value(v any) (any, bool) {
	switch x := v.(type) {
	case nil:
		return nil, true
	case int64:
		if k == double {
			return float64(x), true
		}
		return x, k == integer
	case float64:
		return x + 0, k == double // SQLite knows no negative zero
	case string:
		if k == blob {
			return []byte(x), true
		}
		return x, k == text
	case []byte:
		if k == text {
			return string(x), true
		}
		return x, k == blob
	}
	return nil, false
}

// storable returns an error for a text that PostgreSQL cannot store.
func (t table) storable(row []any) error {
	for i, c := range t.columns {
		s, ok := row[i].(string)
		switch {
		case !ok:
		case strings.IndexByte(s, 0) >= 0:
			return core.Errorf(core.Invalid, "column %s of row %s has a text with a zero byte, which PostgreSQL cannot store: remove it in the source (SQLite: replace(%s, char(0), '')), and try again", c.name, t.keyOf(row), c.name)
		case !utf8.ValidString(s):
			return core.Errorf(core.Invalid, "column %s of row %s has a text that is not UTF-8, which PostgreSQL cannot store: correct it in the source, and try again", c.name, t.keyOf(row))
		}
	}
	return nil
}

// keyOf returns the key of a row for an error.
func (t table) keyOf(row []any) string {
	var parts []string
	for _, k := range t.key {
		for i, c := range t.columns {
			if c.name != k {
				continue
			}
			value := fmt.Sprint(row[i])
			if s, ok := row[i].(string); ok {
				value = strconv.Quote(s)
			}
			parts = append(parts, k+" = "+core.CutRunes(value, 100))
		}
	}
	return strings.Join(parts, ", ")
}

// A summer computes a digest. Values are hashed with their type and length, so that no two
// different tables are hashed as the same bytes.
type summer struct {
	hash hash.Hash
	rows int64
	buf  []byte
}

func (s *summer) add(t table, row []any) (size int, err error) {
	s.rows++
	s.buf = s.buf[:0]
	for i, v := range row {
		switch x := v.(type) {
		case nil:
			s.buf = append(s.buf, 'n')
		case int64:
			s.buf = binary.BigEndian.AppendUint64(append(s.buf, 'i'), uint64(x))
		case float64:
			s.buf = binary.BigEndian.AppendUint64(append(s.buf, 'f'), math.Float64bits(x))
		case string:
			s.buf = append(binary.BigEndian.AppendUint64(append(s.buf, 't'), uint64(len(x))), x...)
		case []byte:
			s.buf = append(binary.BigEndian.AppendUint64(append(s.buf, 'b'), uint64(len(x))), x...)
		default:
			return 0, fmt.Errorf("column %s: unexpected type %T", t.columns[i].name, v)
		}
	}
	size = len(s.buf)
	_, _ = s.hash.Write(s.buf) // never fails
	if cap(s.buf) > batchBytes {
		s.buf = nil
	}
	return size, nil
}

func (s *summer) digest() (d digest) {
	d.rows = s.rows
	copy(d.sum[:], s.hash.Sum(nil))
	return d
}
