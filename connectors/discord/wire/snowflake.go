package wire

import (
	"cmp"
	"strconv"
	"time"
)

// Before returns the snowflake directly before id.
func Before(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n < 2 {
		return "1"
	}
	return strconv.FormatUint(n-1, 10)
}

// Compare compares two snowflakes as cmp.Compare does.
func Compare(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// Newer reports whether a is a later snowflake than b.
func Newer(a, b string) bool { return Compare(a, b) > 0 }

// Snowflake returns the smallest id that the platform assigns at t (Reference,
// Snowflakes: milliseconds since 2015, shifted by 22 bits).
func Snowflake(t time.Time) string {
	return strconv.FormatInt(max(0, t.UnixMilli()-Epoch)<<22, 10)
}
