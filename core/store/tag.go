//go:build !sqlite_fts5 && !fts5

package store

// SQLite's full-text search needs a build tag, which no file of a module can
// set for its driver. Without the tag the build stops at this line.
var _ = build_with_TAGS_sqlite_fts5__see_docs_development_md
