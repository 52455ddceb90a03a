package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/archive"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// restoreDir is where a restore works, in the vault. While it is there the
// vault is not whole, and nothing serves it.
const restoreDir = ".gatehouse-restore"

type restoreCmd struct {
	File string `arg:"" type:"path" help:"The archive that 'gatehouse backup' wrote."`
	JSON bool   `help:"As JSON."`
}

func (c *restoreCmd) Help() string {
	return "Puts a backup into an empty vault (GATEHOUSE_VAULT_PATH names another one). Every checksum is compared before anything is written. What was being answered or sent when the backup was made is not done again by itself: the panel's page Queue shows it. If it is interrupted, run it again."
}

func (c *restoreCmd) Run(p *process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	report, err := restore(p.ctx, cfg, c.File, newProgress(p, "restoring"))
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, report)
	}
	fmt.Fprintf(p.stdout, "Restored %d files and the database of %s into %s.\n", report.Files, report.CreatedAt.Local().Format("2006-01-02 15:04"), cfg.VaultPath)
	if report.Messages+report.Sends > 0 {
		fmt.Fprintf(p.stdout, "%d messages and %d replies were in hand when the backup was made. They are not done again by themselves: see the panel's page Queue.\n", report.Messages, report.Sends)
	}
	for _, name := range report.Left {
		fmt.Fprintf(p.stdout, "Not restored: %s (a link that leads out of the vault)\n", name)
	}
	_, err = fmt.Fprintln(p.stdout, "Secrets are in no backup: give the settings as before, run 'gatehouse doctor', then 'gatehouse serve'.")
	return err
}

// A restoreReport says what was put back.
type restoreReport struct {
	archive.About
	archive.Total
	queue.Restored
	Left []string `json:"left_out"`
}

// A restoreState is the file state.json of a restore: what a crash leaves is
// thrown away while it is not whole, and finished once it is.
type restoreState struct {
	Moving bool          `json:"moving"`          // the tree is whole and on the disk
	Names  []string      `json:"names,omitempty"` // its entries
	Report restoreReport `json:"report"`
}

// restoring is one restore at work.
type restoring struct {
	cfg   *configs.Config
	vault string
	work  string // the folder restoreDir
	db    string // the database's place, links resolved
	lock  *os.File
	show  *progress
}

// restore puts the archive into the empty vault that cfg names.
func restore(ctx context.Context, cfg *configs.Config, file string, show *progress) (restoreReport, error) {
	r := &restoring{cfg: cfg, show: show}
	defer show.end()
	in, err := os.Open(file)
	if err != nil {
		return restoreReport{}, openArchiveError(file, err)
	}
	defer in.Close()
	if st, err := in.Stat(); err != nil || !st.Mode().IsRegular() {
		return restoreReport{}, errors.Join(err, core.Errorf(core.Invalid, "%s is not a file", file))
	}
	if err := r.mayBegin(); err != nil {
		return restoreReport{}, err
	}
	about, total, err := r.check(ctx, in)
	if err != nil {
		return restoreReport{}, err
	}
	if err := r.begin(); err != nil {
		return restoreReport{}, err
	}
	defer func() { _ = r.lock.Close() }()
	report := restoreReport{About: about, Total: total, Left: []string{}}
	if state, ok := r.readState(); ok && state.Moving {
		if state.Report.ID != total.ID {
			return report, core.Errorf(core.Conflict, "the restore of another backup (of %s) was interrupted here when all was there already: run it again with that one, or begin in an empty folder", state.Report.CreatedAt.Format("2006-01-02 15:04"))
		}
		return state.Report, r.finish(state)
	}
	err = r.stage(ctx, in, &report)
	if err != nil {
		return report, errors.Join(err, r.discard())
	}
	state := restoreState{Moving: true, Report: report}
	if state.Names, err = r.staged(); err == nil {
		err = r.writeState(state)
	}
	if err != nil {
		return report, errors.Join(err, r.discard())
	}
	return report, r.finish(state)
}

func openArchiveError(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return core.Errorf(core.NotFound, "there is no file %s", file)
	}
	return err
}

// mayBegin refuses a place where something is that is not ours.
func (r *restoring) mayBegin() error {
	r.vault = r.cfg.VaultPath
	if real, err := filepath.EvalSymlinks(r.vault); err == nil {
		r.vault = real
	}
	r.work = filepath.Join(r.vault, restoreDir)
	r.db = r.cfg.DatabasePath()
	_, err := os.Lstat(r.work)
	again := err == nil
	entries, err := os.ReadDir(r.vault)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	allowed := []string{restoreDir, "lost+found"}
	if state, ok := r.readState(); ok && state.Moving {
		allowed = append(allowed, state.Names...)
	}
	for _, e := range entries {
		if !slices.Contains(allowed, e.Name()) {
			return core.Errorf(core.Conflict, "the vault %s is not empty (%s is in it): a backup is restored into an empty or new folder; GATEHOUSE_VAULT_PATH names it", r.vault, core.CleanName(e.Name()))
		}
	}
	if again || r.inside() {
		return nil
	}
	// SQLite would play the log of another database into the restored one.
	for _, name := range []string{r.db, r.db + "-wal", r.db + "-journal"} {
		if _, err := os.Lstat(name); err == nil {
			return core.Errorf(core.Conflict, "there is a database at %s already: move %s away, or name another place (GATEHOUSE_DATABASE_URL)", r.db, name)
		}
	}
	return nil
}

// inside reports whether the database lies in the vault.
func (r *restoring) inside() bool {
	_, in := r.dbName()
	return in
}

// dbName is the database's name in the vault.
func (r *restoring) dbName() (string, bool) {
	for _, base := range []string{r.vault, r.cfg.VaultPath} {
		if rel, err := filepath.Rel(base, r.db); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// check reads the whole archive and compares its sums, before anything is touched.
func (r *restoring) check(ctx context.Context, in *os.File) (archive.About, archive.Total, error) {
	limits := archive.Limits{Schema: store.Newest()}
	for dir := r.vault; ; dir = filepath.Dir(dir) { // the part of its path that is there
		if _, free, ok := doctorFilesystem(dir); ok {
			limits.Bytes = max(1, int64(min(free, 1<<62)))
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	database := false
	about, total, err := archive.Read(ctx, &watched{ctx: ctx, r: in, show: r.show}, limits, func(e archive.Entry, _ io.Reader) error {
		r.show.entry()
		if e.Name == databaseEntry && e.Kind == archive.File {
			database = true
		} else if !strings.HasPrefix(e.Name, archive.Vault) {
			return core.Errorf(core.Invalid, "the archive holds something that this program does not know: %s", core.CleanName(e.Name))
		}
		return r.ours(e.Name)
	})
	if err == nil && !database {
		err = core.Errorf(core.Invalid, "the archive holds no database")
	}
	return about, total, err
}

// ours refuses entries where the restore itself or the database goes.
func (r *restoring) ours(name string) error {
	rel := strings.TrimPrefix(name, archive.Vault)
	if rel == name {
		return nil
	}
	if rel == restoreDir || strings.HasPrefix(rel, restoreDir+"/") {
		return core.Errorf(core.Invalid, "the archive is damaged: it holds %s", restoreDir)
	}
	if db, in := r.dbName(); in && (rel == db || rel == db+"-wal" || rel == db+"-shm" || rel == db+"-journal") {
		return core.Errorf(core.Conflict, "the database's place is a file of the vault in this backup (%s): name another one (GATEHOUSE_DATABASE_URL)", rel)
	}
	return nil
}

// begin makes the folder to work in and takes it for this process.
func (r *restoring) begin() error {
	if err := os.MkdirAll(r.work, 0o700); err != nil {
		return err
	}
	var err error
	if r.lock, err = os.OpenFile(filepath.Join(r.work, "lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(r.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(core.Errorf(core.Conflict, "another restore works on %s now", r.vault), r.lock.Close())
	}
	return nil
}

func (r *restoring) tree() string { return filepath.Join(r.work, "tree") }

// stagedDB is where the database is made ready: in the tree, or beside its place.
func (r *restoring) stagedDB() string {
	if name, in := r.dbName(); in {
		return filepath.Join(r.tree(), name)
	}
	return r.db + ".restore"
}

// clear throws away what an interrupted restore has left.
func (r *restoring) clear() error {
	errs := []error{os.RemoveAll(r.tree())}
	if !r.inside() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(r.stagedDB() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// discard is clear for good: the vault is as empty as before.
func (r *restoring) discard() error {
	return errors.Join(r.clear(), os.RemoveAll(r.work))
}

// stage puts everything into the tree, and makes the database ready.
func (r *restoring) stage(ctx context.Context, in *os.File, report *restoreReport) error {
	if err := r.clear(); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(r.tree(), 0o700), os.MkdirAll(filepath.Dir(r.stagedDB()), 0o700)); err != nil {
		return err
	}
	root, err := os.OpenRoot(r.tree())
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	tree := archive.NewTree(root)
	about, total, err := archive.Read(ctx, &watched{ctx: ctx, r: in, show: r.show}, archive.Limits{Bytes: report.Bytes}, func(e archive.Entry, body io.Reader) error {
		r.show.entry()
		if e.Name == databaseEntry {
			return writeNew(r.stagedDB(), body)
		}
		return tree.Put(e, body)
	})
	if err == nil && (total != report.Total || !about.CreatedAt.Equal(report.CreatedAt)) {
		err = core.Errorf(core.Conflict, "the archive was changed while it was restored: try again")
	}
	if err != nil {
		return err
	}
	if report.Restored, err = settleRestored(ctx, r.stagedDB()); err != nil {
		return err
	}
	if err := tree.Finish(); err != nil {
		return err
	}
	report.Left = append(report.Left, tree.Left...)
	syscall.Sync() // all of it is on the disk before it is called whole
	return nil
}

// writeNew makes a file that must not be there.
func writeNew(name string, body io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return errors.Join(err, f.Close())
}

// settleRestored brings the database at path to this program's version and
// sets aside what would be done a second time.
func settleRestored(ctx context.Context, path string) (r queue.Restored, err error) {
	db, err := store.Open(ctx, path, store.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	events := orchestrator.NewEvents(db, core.System{})
	err = db.Tx(ctx, func(tx *store.Tx) (err error) {
		// Discord would be asked for everything since the backup, and what was
		// answered since answered again. Telegram tells only what nobody took.
		if r, err = queue.AfterRestore(ctx, tx, "discord:"); err != nil {
			return err
		}
		if _, err := store.DeleteMetadataLike(ctx, tx, "discord:"); err != nil {
			return err
		}
		if _, err := events.AbandonAll(ctx, tx); err != nil {
			return err
		}
		return store.Audit(ctx, tx, cli, "backup.restore", "", map[string]any{"messages": r.Messages, "sends": r.Sends})
	})
	return r, err
}
