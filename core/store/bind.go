package store

import "strings"

// numbered replaces $1 by ?1. To SQLite "$1" is a name, numbered by its first
// place; "?1" is the number that PostgreSQL means by $1.
func numbered(query string) string {
	i := strings.IndexByte(query, '$')
	if i < 0 {
		return query
	}
	b := []byte(query)
	for ; i < len(b)-1; i++ {
		if b[i] == '$' && b[i+1] >= '0' && b[i+1] <= '9' {
			b[i] = '?'
		}
	}
	return string(b)
}
