package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store"
	"gatehouse/core/store/postgres"
	"gatehouse/core/store/storetest"
)

// A pgServer is PostgreSQL's of a test, which ends it.
type pgServer struct {
	t         *testing.T
	bin, data string
	port      string
}

// as returns a command of PostgreSQL, which refuses to be root.
func (s *pgServer) as(name string, args ...string) *exec.Cmd {
	args = append([]string{filepath.Join(s.bin, name)}, args...)
	if os.Getuid() == 0 {
		args = append([]string{"runuser", "-u", "postgres", "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	return cmd
}

func (s *pgServer) run(name string, args ...string) {
	s.t.Helper()
	cmd := s.as(name, args...)
	if name == "pg_ctl" { // its server keeps the pipe of an output
		cmd.Args = append(cmd.Args, "-s", "-l", s.data+".log")
		if err := cmd.Run(); err != nil {
			log, _ := os.ReadFile(s.data + ".log")
			s.t.Fatalf("%s %s: %v\n%s", name, args, err, log)
		}
		return
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, args, err, out)
	}
}

func (s *pgServer) start() {
	s.t.Helper()
	s.run("pg_ctl", "-D", s.data, "-w", "-o", "-h 127.0.0.1 -p "+s.port+" -k '' -c fsync=off -c min_wal_size=32MB -c max_wal_size=64MB", "start")
	s.t.Cleanup(func() { _ = s.as("pg_ctl", "-D", s.data, "-m", "immediate", "stop").Run() })
}

// do runs statements, each by itself.
func (s *pgServer) do(statements ...string) {
	s.t.Helper()
	db, err := sql.Open("pgx", "postgres://postgres@127.0.0.1:"+s.port+"/postgres?sslmode=disable")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	for _, q := range statements {
		if _, err := db.ExecContext(s.t.Context(), q); err != nil {
			s.t.Fatalf("%s: %v", q, err)
		}
	}
}

// pair is a primary and its synchronous standby: a commit is on both.
func pair(t *testing.T) (primary, standby *pgServer) {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_basebackup")
	if len(found) == 0 {
		t.Skip("pg_basebackup is not installed here, so this was NOT checked")
	}
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o777); err != nil { // for the user postgres
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(freePort(t), ":")
	primary = &pgServer{t, filepath.Dir(found[len(found)-1]), filepath.Join(smallDisk(t, dir, "one"), "data"), port}
	_, port, _ = strings.Cut(freePort(t), ":")
	standby = &pgServer{t, primary.bin, filepath.Join(smallDisk(t, dir, "two"), "data"), port}
	primary.run("initdb", "-D", primary.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C")
	primary.start()
	primary.run("pg_basebackup", "-d", "host=127.0.0.1 user=postgres port="+primary.port, "-D", standby.data, "-R", "-c", "fast", "--no-sync")
	standby.start()
	primary.do(`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`, `CREATE DATABASE gatehouse`)
	return primary, standby
}

func TestPostgres_MessagesSurviveTheFailoverToAStandbyServer(t *testing.T) {
	storetest.PostgresOnly(t, "a file has no standby server")
	primary, standby := pair(t)
	model := llmtest.New(t, llmtest.Options{Choose: func(r llmtest.Request) llmtest.Reply {
		return llmtest.Say("You wrote: ", r.Messages[len(r.Messages)-1].Content)
	}})
	w := newWorld(t, func(c *configs.Config) {
		c.DatabaseURL = "postgres://postgres@127.0.0.1:" + primary.port + ",127.0.0.1:" + standby.port + "/gatehouse?sslmode=disable"
		c.Model, c.OpenaiBaseURL = fakeModel, model.URL()
		c.BusyMode, c.RateLimit, c.Activity, c.Memory = "queue", values.Rate{}, false, false
	})
	boss := w.boss()
	first := boss.Send("begin").ID
	w.answers(boss.DM(), first)
	if _, err := postgres.Look(t.Context(), "postgres://postgres@127.0.0.1:"+standby.port+"/gatehouse?sslmode=disable", ""); core.KindOf(err) != core.Busy {
		t.Errorf("a server that only reads is fit for a gateway: %v", err)
	}
	const messages = 12
	var begun time.Time
	for i := range messages {
		boss.Send(fmt.Sprintf("message %d", i))
		if i == messages/2 {
			begun = time.Now()
			primary.run("pg_ctl", "-D", primary.data, "-m", "immediate", "stop") // as a crash
			standby.run("pg_ctl", "-D", standby.data, "-w", "promote")
		}
	}
	w.until("the gateway is ready", func() bool { status, _ := w.call("GET", "/readyz", nil); return status == 200 })
	t.Logf("ready %s after the primary ended", time.Since(begun).Round(time.Millisecond))
	w.quiet()
	said := w.said(boss.DM(), first)[1:]
	if len(said) != messages {
		t.Errorf("%d answers to %d messages:\n%s", len(said), messages, strings.Join(said, "\n"))
	}
	for i, text := range said {
		if want := fmt.Sprintf("message %d", i); !strings.HasSuffix(strings.TrimSpace(text), want) {
			t.Errorf("answer %d is %q, want the one to %q", i, text, want)
		}
	}
}

// The answer of a commit can be lost although it was kept: a claim and a mark that nobody
// knows of must hold nothing up.
func TestPostgres_WhatALostAnswerOfACommitLeftIsTakenUpAgain(t *testing.T) {
	storetest.PostgresOnly(t, "a commit of a file has an answer")
	w := newWorld(t, func(c *configs.Config) { c.DatabaseURL = storetest.Fresh(t) })
	boss := w.boss()
	first := boss.Send("How long should green tea brew?").ID
	w.answers(boss.DM(), first)
	w.quiet()
	if err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, claim := tx.Exec(t.Context(), `UPDATE lane SET owner = 'node', epoch = epoch + 1, lease_until = $1`, core.Stamp(tx.Time().Add(time.Minute)))
		_, mark := tx.Exec(t.Context(), `INSERT INTO outbox (bot, chat, thread, place, key, ordinal, body, replaces, state, attempts, created_at, sent_at)
			SELECT bot, chat, thread, place, 'lost:1', 0, '{"text": "marked and not sent"}', '', 'sending', 1, created_at, sent_at FROM outbox ORDER BY seq DESC LIMIT 1`)
		return errors.Join(claim, mark)
	}); err != nil {
		t.Fatal(err)
	}
	next := boss.Send("How long should green tea brew?").ID
	w.answers(boss.DM(), next)
	w.quiet()
	said := w.said(boss.DM(), first)
	if n := slices.Index(said, "marked and not sent"); n != 1 || len(said) != 3 {
		t.Errorf("the bot said %q", said)
	}
	if n := w.count(`SELECT count(*) FROM outbox WHERE key = 'lost:1' AND state = 'sent' AND attempts = 1`); n != 1 {
		t.Error("the reply was not sent at its first attempt")
	}
}
