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
