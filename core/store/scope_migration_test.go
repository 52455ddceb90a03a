package store_test

import "testing"

// What chats and runs tell of a session's group is kept with it; one of a platform of
// which neither is left is not said to be private.
func TestSessionsOfGroupsAreFoundByTheMigration(t *testing.T) {
	db := migrated(t, "1098_session_scope.sql",
		`CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, original_id TEXT)`,
		`CREATE TABLE chats (bot TEXT, chat TEXT, place TEXT, session_id TEXT)`,
		`CREATE TABLE runs (session_id TEXT, bot TEXT, chat TEXT)`,
		`INSERT INTO sessions VALUES ('api', 'api', NULL), ('bound', 'p', NULL), ('direct', 'p', NULL), ('gone', 'p', NULL), ('group', 'p', NULL), ('import', 'p', 'x'), ('old', 'p', NULL), ('taken', 'p', NULL)`,
		`INSERT INTO chats VALUES ('b', 'g', 'g', 'group'), ('b', 'c', '', 'taken'), ('b', 'd', '', 'bound')`,
		`INSERT INTO runs VALUES ('old', 'b', 'g'), ('old', 'api', 'old'), ('direct', 'b', 'c'), ('gone', 'api', 'gone'), ('taken', 'b', 'g'), ('taken', 'b', 'c')`,
	)
	var found string
	err := db.QueryRow(`SELECT group_concat(id || ' ' || scope, ', ') FROM (SELECT * FROM sessions ORDER BY id)`).Scan(&found)
	if want := "api dm, bound dm, direct dm, gone , group group, import dm, old group, taken group"; err != nil || found != want {
		t.Errorf("%q, %v; want %q", found, err, want)
	}
}
