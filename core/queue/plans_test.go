package queue

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gatehouse/core/store/postgres"
	"gatehouse/core/store/storetest"
)

// statements returns the SQL texts of this package, outbox, moved and maintenance, read from the source.
func statements(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	for _, pattern := range []string{"outbox/*.go", "moved/*.go", "burst/*.go", "recent/*.go", "maintenance/*.go"} {
		if err != nil {
			break
		}
		var more []string
		more, err = filepath.Glob(pattern)
		names = append(names, more...)
	}
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	inspect := func(visit func(ast.Node) bool) {
		for _, f := range files {
			ast.Inspect(f, visit)
		}
	}
	consts := map[string]ast.Expr{}
	var eval func(ast.Expr) (string, bool)
	eval = func(e ast.Expr) (string, bool) {
		switch e := e.(type) {
		case *ast.BasicLit:
			s, err := strconv.Unquote(e.Value)
			return s, e.Kind == token.STRING && err == nil
		case *ast.Ident:
			if c := consts[e.Name]; c != nil {
				return eval(c)
			}
		case *ast.BinaryExpr:
			x, ok1 := eval(e.X)
			y, ok2 := eval(e.Y)
			return x + y, ok1 && ok2
		}
		return "", false
	}
	inspect(func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
			for i := range v.Names {
				consts[v.Names[i].Name] = v.Values[i]
			}
		}
		return true
	})
	var out []string
	inspect(func(n ast.Node) bool {
		if _, ok := n.(*ast.GenDecl); ok {
			return false
		}
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		s, ok := eval(e)
		if ok && regexp.MustCompile(`(?s)^(SELECT|UPDATE|DELETE|INSERT)\s.*\b(FROM|SET|INTO)\b`).MatchString(s) {
			out = append(out, s)
		}
		return !ok
	})
	return out
}

// scans are walks over a whole table; one over an index of open work only is
// as short as that work.
var (
	scans = regexp.MustCompile(`^SCAN (inbox|outbox|lane|[a-z])\b`)
	// A restore of a backup may scan whole tables.
	rare  = regexp.MustCompile(`^UPDATE lane SET owner = '', pending = 0, preview`)
	short = regexp.MustCompile(` (inbox_lane|inbox_request|inbox_dead|outbox_open|outbox_unknown|lane_pending|lane_owned)$`)
)

// No statement of the queue may scan the finished rows: there can be a million.
func TestNoStatementWalksOverFinishedRows(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans; TestPostgresUnderstandsEveryStatement")
	db := storetest.Open(t, nil)
	all := statements(t)
	if len(all) < 40 {
		t.Fatalf("only %d statements were found", len(all))
	}
	params := regexp.MustCompile(`\$(\d+)`)
	for _, query := range all {
		if strings.HasPrefix(query, "UPDATE lane SET owner = '', pending = 0, preview = ''") {
			continue // of AfterRestore: once, before anything serves
		}
		n := 0
		for _, m := range params.FindAllStringSubmatch(query, -1) {
			i, _ := strconv.Atoi(m[1])
			n = max(n, i)
		}
		for _, p := range storetest.Plan(t, db, query, make([]any, n)...) {
			if !rare.MatchString(query) && scans.MatchString(p.Detail) && !short.MatchString(p.Detail) {
				t.Errorf("%s\n\twalks: %s", query, p.Detail)
			}
		}
	}
}

// This includes statements that no other test runs: PostgreSQL checks names and
// types when it prepares a statement.
func TestPostgresUnderstandsEveryStatement(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite's is TestNoStatementWalksOverFinishedRows")
	db, err := postgres.Open(storetest.Open(t, nil).Path(), "", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range statements(t) {
		if strings.Contains(query, "sqlite_sequence") {
			continue // SkipNumbers runs others on a server
		}
		s, err := db.PrepareContext(t.Context(), query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
