package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"

	"gatehouse/core"
	"gatehouse/core/store"
)

// useKept is the database's version from which on it reports what attachments take.
const useKept = 1013

// checkAttachments returns how much room attachments take, and warns when nine tenths
// of a bound are taken. Of a database without the figure it states nothing.
func checkAttachments(ctx context.Context, p Subject) []Finding {
	path := p.Config.DatabasePath()
	if p.Config.OnServer() {
		return nil // it is asked of files alone
	}
	if version, adopt, err := store.Examine(ctx, path); err != nil || adopt || version < useKept {
		return nil
	}
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "mode=ro"}).String())
	if err != nil {
		return nil // the check of the database explains why
	}
	defer db.Close()
	var whole, most int64
	if db.QueryRowContext(ctx, `SELECT coalesce(sum(bytes), 0), coalesce(max(CASE WHEN user_id <> ? THEN bytes END), 0) FROM attachment_use`, core.Operator).Scan(&whole, &most) != nil {
		return nil
	}
	person, all := int64(p.Config.FilesPersonMB)<<20, int64(p.Config.FilesMB)<<20
	c := Finding{Name: "attachments", State: OK}
	c.Text = fmt.Sprintf("attachments take %s of %s; of one person %s of %s at most", core.ByteSize(int(whole)), bound(all), core.ByteSize(int(most)), bound(person))
	if all > 0 && whole > all/10*9 || person > 0 && most > person/10*9 {
		c.State = Warn
		c.Fix = "delete files in Chat/assets of the vault, or raise GATEHOUSE_FILES_MB or GATEHOUSE_FILES_PERSON_MB"
	}
	return []Finding{c}
}

func bound(n int64) string {
	if n == 0 {
		return "any size"
	}
	return core.ByteSize(int(n))
}
