package store_test

import "testing"

// What an admin left before 1280 who was removed, or made a viewer, opens nothing after it.
func TestADatabaseInUseLosesWhatFormerAdminsLeft(t *testing.T) {
	db := migrated(t, "1280_power_of_admins.sql",
		`CREATE TABLE api_keys (id TEXT PRIMARY KEY, user_id INTEGER NOT NULL);
		CREATE TABLE audit_events (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL);
		CREATE TABLE admin_accounts (user_id INTEGER PRIMARY KEY, role TEXT NOT NULL);
		CREATE TABLE invites (id TEXT PRIMARY KEY, "by" INTEGER NOT NULL)`,
		`INSERT INTO admin_accounts (user_id, role) VALUES (1, 'admin'), (2, 'admin'), (3, 'viewer')`,
		`INSERT INTO api_keys (id, user_id) VALUES ('file', 1), ('owner''s', 57), ('own', 2), ('of an admin', 57), ('of a viewer', 57), ('of a removed one', 57), ('of one with a key', 57), ('theirs', 5)`,
		`INSERT INTO audit_events (user_id, action, subject) VALUES (0, 'key.create', 'file'), (1, 'key.create', 'owner''s'), (2, 'key.create', 'own'), (2, 'key.create', 'of an admin'),
			(3, 'key.create', 'of a viewer'), (4, 'key.create', 'of a removed one'), (5, 'key.create', 'of one with a key'), (4, 'key.change', 'own')`,
		`INSERT INTO invites (id, "by") VALUES ('a', 0), ('b', 1), ('c', 2), ('d', 3), ('e', 4)`)
	for query, want := range map[string]string{
		`SELECT group_concat(id || ' ' || made_by, ', ') FROM (SELECT id, made_by FROM api_keys ORDER BY id)`: "file 1, of an admin 2, of one with a key 5, own 2, owner's 57, theirs 5",
		`SELECT group_concat(id, ' ') FROM (SELECT id FROM invites ORDER BY id)`:                              "a b c",
	} {
		var got string
		if err := db.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%q, want %q, %v", got, want, err)
		}
	}
}

// Until 1280 an admin could rotate the key of another user, and has its secret. That release
// read who made a key alone, and spared whoever had a key of any scope.
func TestADatabaseInUseLosesTheKeysThatFormerAdminsRotated(t *testing.T) {
	db := migrated(t, "1291_rotated_keys.sql",
		`CREATE TABLE api_keys (id TEXT PRIMARY KEY, user_id INTEGER NOT NULL, made_by INTEGER NOT NULL, scopes TEXT NOT NULL DEFAULT '', old_sha256 TEXT NOT NULL DEFAULT '', old_expires_at TEXT NOT NULL DEFAULT '');
		CREATE TABLE audit_events (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL);
		CREATE TABLE admin_accounts (user_id INTEGER PRIMARY KEY, role TEXT NOT NULL)`,
		`INSERT INTO admin_accounts (user_id, role) VALUES (1, 'admin'), (2, 'admin'), (3, 'viewer')`,
		`INSERT INTO api_keys (id, user_id, made_by, old_sha256, old_expires_at) VALUES
			('of a removed one', 57, 57, '', ''), ('of a viewer', 57, 1, '', ''), ('of an admin', 57, 57, '', ''), ('own', 2, 2, 'x', 'then'),
			('since by the owner', 57, 57, 'x', 'then'), ('by the program', 57, 57, 'x', 'then'), ('of one with a key', 57, 57, '', ''), ('of one with a key to chat', 57, 57, '', ''),
			('rotated before', 57, 57, 'x', 'then'), ('never rotated', 57, 6, '', ''), ('to chat', 6, 6, '', '')`,
		`INSERT INTO api_keys (id, user_id, made_by, scopes) VALUES ('theirs', 5, 5, 'admin chat')`,
		`UPDATE api_keys SET scopes = 'chat' WHERE id = 'to chat'`,
		`INSERT INTO audit_events (user_id, action, subject) VALUES (4, 'key.rotate', 'of a removed one'), (1, 'key.create', 'of a viewer'), (3, 'key.rotate', 'of a viewer'), (4, 'key.change', 'of an admin'),
			(4, 'key.rotate', 'of an admin'), (2, 'key.rotate', 'of an admin'), (2, 'key.rotate', 'own'), (4, 'key.rotate', 'since by the owner'), (1, 'key.rotate', 'since by the owner'),
			(0, 'key.rotate', 'by the program'), (5, 'key.rotate', 'of one with a key'), (6, 'key.rotate', 'of one with a key to chat'),
			(6, 'key.rotate', 'rotated before'), (1, 'key.rotate', 'rotated before'), (6, 'key.create', 'never rotated')`)
	var got string
	err := db.QueryRow(`SELECT group_concat(id || ' ' || made_by || old_sha256, ', ') FROM (SELECT * FROM api_keys ORDER BY id)`).Scan(&got)
	if want := "by the program 57x, of an admin 2, of one with a key 5, own 2x, rotated before 1, since by the owner 1, theirs 5, to chat 6"; err != nil || got != want {
		t.Errorf("%q, want %q, %v", got, want, err)
	}
}
