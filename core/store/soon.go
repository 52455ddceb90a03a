package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"gatehouse/core/store/migrations"
)

// maxUnsynced is how long a commit of TxSoon may be in the page cache alone.
const maxUnsynced = time.Second

// TxSoon is Tx, but on SQLite its commit is on the disk only with the next one of Tx, or
// after maxUnsynced. A power cut before that undoes it, and no earlier commit; a program
// that is killed loses nothing. It is for what can be found out again or need not be
// known: that a message which has arrived has arrived. A server would undo it while the
// program goes on, which nobody expects: there it is Tx.
func (d *DB) TxSoon(ctx context.Context, f func(*Tx) error) error {
	return d.do(ctx, &job{ctx: context.WithoutCancel(ctx), f: f, soon: d.engine.kind == migrations.SQLite, done: make(chan struct{})})
}

// durable has the next commit wait for the disk, unless all of group need not. SQLite
// takes the setting between transactions, on preparing the statement: none is kept.
func (d *DB) durable(group []*job) error {
	soon := len(group) > 0
	for _, j := range group {
		soon = soon && j.soon
	}
	if soon == d.soon {
		return nil
	}
	level := synchronous
	if soon {
		level = "NORMAL" // in WAL: no fsync at a commit, and one before a checkpoint
	}
	if _, err := d.conn.ExecContext(context.Background(), "PRAGMA synchronous = "+level); err != nil {
		return fmt.Errorf("synchronous: %w", err)
	}
	d.soon = soon
	return nil
}

// committed notes whether the commit that has just ended is on the disk, and all before
// it with it.
func (d *DB) committed() {
	switch {
	case !d.soon:
		d.synced.Add(1)
		d.unsynced.Stop()
	case !d.waiting:
		d.unsynced.Reset(maxUnsynced)
	}
	d.waiting = d.soon
}

// sync brings what was committed to the disk. The log is no file on which SQLite holds
// locks, so another descriptor of it may be closed. What has been carried over into the
// main file was synced before that.
func (d *DB) sync() {
	d.waiting = false
	log, err := os.OpenFile(d.path+"-wal", os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = errors.Join(log.Sync(), log.Close())
	}
	if err != nil {
		d.log.Error("database: the log cannot be brought to the disk; it is tried again", "err", err)
		d.waiting = true
		d.unsynced.Reset(maxUnsynced)
	}
}
