package schemas_test

import (
	"database/sql"
	"net/url"
	"os"
	"testing"

	"gatehouse/cmd/loadgen/schemas"
	"gatehouse/core/store/storetest"
)

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

func TestEachSchemaIsEmptyAndItsOwnAndDroppedInTheEnd(t *testing.T) {
	storetest.PostgresOnly(t, "a file has no schemas")
	at := os.Getenv("GATEHOUSE_TEST_PG")
	s := schemas.Schemas{Address: at}
	var names []string
	for range 2 {
		address, err := s.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, u.Query().Get("search_path"))
		db, err := sql.Open("pgx", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), `CREATE TABLE songs (id INTEGER)`); err != nil {
			t.Errorf("the schema is not empty, or not used: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Drop(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", at)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var left int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname IN ($1, $2)`, names[0], names[1]).Scan(&left); err != nil || left != 0 || names[0] == names[1] {
		t.Errorf("of %v %d are left: %v", names, left, err)
	}
}

func TestAnAddressThatIsNoURLIsRefused(t *testing.T) {
	s := schemas.Schemas{Address: "postgres://%zz"}
	if _, err := s.Create(t.Context()); err == nil {
		t.Error("it is taken")
	}
}
