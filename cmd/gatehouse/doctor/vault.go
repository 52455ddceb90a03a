package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"gatehouse/cmd/gatehouse/standby/vaultid"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/sealed/columns"
	"gatehouse/core/store"
	"gatehouse/core/store/integrity"
	"gatehouse/core/store/snapshot"
)

const (
	spaceWarn = 1 << 30   // bytes free
	spaceFail = 100 << 20 // below this a database soon cannot grow

	checkTime = 2 * time.Minute // for the database; a larger one is checked as far as this goes
)

// checkVault checks the directory: there or to be made, private, writable, on
// a disk of this machine, with room.
func checkVault(_ context.Context, p Subject) []Finding {
	path := p.Config.VaultPath
	check := Finding{Name: "vault", State: Fail}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := nearestDir(path)
		if err := writable(parent); err != nil {
			check.Text = path + " does not exist and cannot be made: " + err.Error()
			check.Fix = "make it yourself (mkdir -m 700), or set GATEHOUSE_VAULT_PATH"
			return []Finding{check}
		}
		check.State, check.Text = OK, path+" will be made at the first start"
		return append([]Finding{check}, checkDisk(parent)...)
	case err != nil:
		check.Text, check.Fix = err.Error(), "give this user the right to reach the folder, or set GATEHOUSE_VAULT_PATH"
		return []Finding{check}
	case !info.IsDir():
		check.Text, check.Fix = path+" is a file, not a folder", "set GATEHOUSE_VAULT_PATH to a folder"
		return []Finding{check}
	}
	check.State, check.Text = OK, fmt.Sprintf("%s, mode %04o", path, info.Mode().Perm())
	if info.Mode().Perm()&0o077 != 0 {
		check.State, check.Text = Warn, check.Text+": other users of this machine can look in"
		check.Fix = "chmod 700 '" + path + "'"
	}
	if err := writable(path); err != nil {
		check.State, check.Text = Fail, path+" cannot be written: "+err.Error()
		check.Fix = "give the folder to the user that runs the gateway (chown), or mount it writable"
	}
	return append([]Finding{check}, checkDisk(path)...)
}

// nearestDir returns the nearest directory above path that is there.
func nearestDir(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// writable makes a file in dir and takes it away again.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".gatehouse-doctor-*")
	if err != nil {
		return errors.Unwrap(err) // the reason alone, without the file's name
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// checkDisk warns of directories that other machines change, and of little room.
func checkDisk(dir string) []Finding {
	var checks []Finding
	if by := synced(dir); by != "" {
		checks = append(checks, Finding{"vault", Warn, dir + " is kept in step by " + by + ": a database that is copied while it is written can be damaged",
			"set GATEHOUSE_DATABASE_URL to a file outside of it, and run only one gateway on this vault"})
	}
	system, free, ok := Filesystem(dir)
	if system != "" {
		checks = append(checks, Finding{"vault", Warn, dir + " is on " + system + ": locks and writes may not be kept as promised",
			"use a disk of this machine, at least for the database (GATEHOUSE_DATABASE_URL)"})
	}
	switch {
	case !ok || free >= spaceWarn:
	case free < spaceFail:
		checks = append(checks, Finding{"space", Fail, fmt.Sprintf("%d MB are free under %s", free>>20, dir), "make room on the disk"})
	default:
		checks = append(checks, Finding{"space", Warn, fmt.Sprintf("%d MB are free under %s", free>>20, dir), "make room on the disk"})
	}
	if ok && free >= spaceWarn {
		checks = append(checks, Finding{"space", OK, fmt.Sprintf("%d GB are free under %s", free>>30, dir), ""})
	}
	return checks
}

// syncers are parts of paths by which directories of sync programs are known, in
// lower case, and who they belong to.
var syncers = [...][2]string{
	{"dropbox", "Dropbox"}, {"onedrive", "OneDrive"}, {"icloud", "iCloud"}, {"com~apple~clouddocs", "iCloud"}, {"mobile documents", "iCloud"},
	{"google drive", "Google Drive"}, {"googledrive", "Google Drive"}, {"nextcloud", "Nextcloud"}, {"owncloud", "ownCloud"}, {"syncthing", "Syncthing"},
}

// synced names the sync program whose directory dir is in, by the names on
// the way and by the mark that Syncthing leaves; "" when none is seen.
func synced(dir string) string {
	for _, part := range strings.Split(filepath.ToSlash(strings.ToLower(dir)), "/") {
		for _, s := range syncers {
			if part == s[0] || strings.HasPrefix(part, s[0]+" ") || strings.HasPrefix(part, s[0]+"-") || strings.HasPrefix(part, s[0]+"(") {
				return s[1]
			}
		}
	}
	for d := dir; ; d = filepath.Dir(d) {
		if info, err := os.Stat(filepath.Join(d, ".stfolder")); err == nil && info.IsDir() {
			return "Syncthing"
		}
		if d == filepath.Dir(d) {
			return ""
		}
	}
}

// checkElsewhere warns of a file that is not the database which the vault was served with.
func checkElsewhere(ctx context.Context, p Subject) []Finding {
	fault, fix := vaultid.Elsewhere(ctx, p.Config)
	if fault == "" {
		return nil
	}
	return []Finding{{"database", Warn, fault, fix}}
}

// checkDatabase opens the file for reading and checks its version.
func checkDatabase(ctx context.Context, p Subject) []Finding {
	path := p.Config.DatabasePath()
	if p.Config.OnServer() {
		return checkServer(ctx, p)
	}
	c := Finding{Name: "database", State: Fail}
	info, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
	if err != nil && !missing {
		c.Text, c.Fix = err.Error(), "give this user the right to read the file"
		return []Finding{c}
	}
	fts5, err := hasFTS5(ctx)
	var version int64
	var adopt bool
	if err == nil && !missing {
		version, adopt, err = store.Examine(ctx, path)
	}
	var damaged error
	if err == nil && !missing {
		limited, cancel := context.WithTimeout(ctx, checkTime)
		damaged = integrity.Full(limited, path)
		cancel()
	}
	switch {
	case core.KindOf(err) == core.Invalid:
		c.Text, c.Fix = path+": "+core.TextOf(err), "see docs/backup.md, Upgrade"
	case err != nil:
		c.Text = path + " cannot be read: " + err.Error()
		c.Fix = "if it is damaged, restore a copy (docs/backup.md); if it is another program's, set GATEHOUSE_DATABASE_URL"
	case !fts5:
		c.Text, c.Fix = "this program was built without full-text search", "build it with: make build"
	case missing:
		c.State, c.Text = OK, path+" will be made at the first start"
	case adopt:
		c.State = OK
		c.Text = fmt.Sprintf("%s is of the original system, version %d; the next start takes it over and keeps a copy (stop the original system first)", path, version)
	case p.Newest > 0 && version > p.Newest:
		c.Text = fmt.Sprintf("%s has version %d, newer than this program's %d", path, version, p.Newest)
		c.Fix = "use the newer program, or restore the copy that was kept next to the file"
	case core.KindOf(damaged) == core.Invalid:
		c.Text, c.Fix = core.TextOf(damaged), "see docs/backup.md, Rebuild a lost database"
	default:
		c.State, c.Text = OK, fmt.Sprintf("%s, version %d, full-text search built in", path, version)
		if p.Newest > version {
			c.Text += fmt.Sprintf("; the next start brings it to version %d and keeps a copy", p.Newest)
		}
		if recorded, err := snapshot.Peek(ctx, path, columns.InUse); err == nil {
			return append([]Finding{c}, checkContentKey(p, recorded)...)
		}
	}
	return []Finding{c}
}

// checkContentKey looks for the keys with which a database is encrypted, as it has recorded them.
func checkContentKey(p Subject, recorded string) []Finding {
	err := columns.Complete(recorded, p.Config.ContentKeyPath(), configs.Prefix+"_CONTENT_KEY_FILE")
	if err == nil {
		return nil
	}
	return []Finding{{"content key", Fail, core.TextOf(err), "see docs/encryption.md; 'gatehouse serve' does not start without it"}}
}

// hasFTS5 reports whether the program's SQLite has full-text search.
func hasFTS5(ctx context.Context) (on bool, err error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return false, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, `SELECT sqlite_compileoption_used('ENABLE_FTS5')`).Scan(&on)
	return on, err
}
