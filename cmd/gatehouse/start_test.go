package main

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/configs"
	"gatehouse/web/auth/password"
)

// Without a terminal nobody reads a one-time password, so none is made; the
// log says how to get in.
func TestAStartWithoutATerminalReportsHowToGetIntoThePanel(t *testing.T) {
	h := newHome(t, nil)
	p := h.serve(nil)
	p.interrupt()
	if strings.Contains(p.err.String(), "no one can sign in") {
		t.Errorf("there is a password, and still:\n%s", p.err.String())
	}
	h = newHome(t, nil)
	delete(h.env, "GATEHOUSE_ADMIN_PASSWORD")
	p = h.serve(nil)
	p.says("GATEHOUSE_ADMIN_PASSWORD_FILE")
	if out := p.out.String() + p.err.String(); strings.Contains(out, "one-time password:") {
		t.Errorf("a one-time password stands in a log:\n%s", out)
	}
	p.interrupt()
}

func TestTheDoctorTellsABadConfigurationOnce(t *testing.T) {
	h := newHome(t, nil)
	h.env["GATEHOUSE_ADMIN_PASSWORD"] = "short"
	code, out, errs := h.run("doctor")
	if n := strings.Count(out+errs, "GATEHOUSE_ADMIN_PASSWORD: "); code != exitUsage || n != 1 {
		t.Errorf("%d, told %d times: %q %q", code, n, out, errs)
	}
}

// A password that the configuration accepts is one that the start accepts: what is shorter is
// named with its setting before anything begins.
func TestAConfiguredPasswordIsAsLongAsAChosenOne(t *testing.T) {
	if configs.MinPassword != password.Min || configs.MaxPassword != password.Max || doctor.MinPassword != password.Min {
		t.Errorf("the configuration takes %d to %d bytes, the panel %d to %d, and doctor wants %d", configs.MinPassword, configs.MaxPassword, password.Min, password.Max, doctor.MinPassword)
	}
	h := newHome(t, nil)
	h.env["GATEHOUSE_ADMIN_PASSWORD"] = strings.Repeat("x", password.Min-1)
	if code, out, errs := h.run("serve"); code != exitUsage || !strings.Contains(out+errs, "at least 12 characters") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	h.env["GATEHOUSE_ADMIN_PASSWORD"] = strings.Repeat("x", password.Min)
	h.serve(nil).interrupt()
}

func TestATakenAddressIsNamedWithItsSetting(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, setting := range []string{"GATEHOUSE_ADDR", "GATEHOUSE_METRICS_ADDR"} {
		h := newHome(t, nil)
		h.env[setting], h.env["GATEHOUSE_VAULT_PATH"] = l.Addr().String(), filepath.Join(h.dir, "new")
		files := func() (all []string) {
			_ = filepath.WalkDir(h.dir, func(path string, _ fs.DirEntry, _ error) error { all = append(all, path); return nil })
			return all
		}
		before := files()
		code, _, errs := h.run("serve")
		if want := l.Addr().String() + " is taken by another program"; code != exitFailure || !strings.Contains(errs, want) || !strings.Contains(errs, "set "+setting) {
			t.Errorf("%s: %d %q", setting, code, errs)
		}
		if now := files(); !slices.Equal(now, before) {
			t.Errorf("%s: a first start that fails has made %q, before were %q", setting, now, before)
		}
	}
}

func TestAVaultMayHaveAnyName(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	for _, name := range []string{"my notes", "Ключи ⚿ 鍵", "a'b\"c", "50% & more?#"} {
		h.env["GATEHOUSE_VAULT_PATH"] = h.dir + "/" + name
		p := h.serve(nil)
		if code, out, errs := h.run("claim"); code != 0 || !strings.Contains(out, "/claim ") || errs != "" {
			t.Errorf("%q: claim: %d %q %q", name, code, out, errs)
		}
		p.interrupt()
		if code, out, _ := h.run("doctor"); code != 0 {
			t.Errorf("%q: doctor: %d\n%s", name, code, out)
		}
	}
}

// A part that ended because the gateway stops may be heard of before the stop
// itself: the log says "stopping" all the same, and the end is a clean one.
func TestAStopIsReportedAlsoWhenAPartIsHeardOfFirst(t *testing.T) {
	for range 64 { // either of two ready channels may be read first
		var said bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		stop()
		failed := make(chan error, 1)
		failed <- ctx.Err()
		if err := untilStopped(ctx, failed, slog.New(slog.NewTextHandler(&said, nil)), time.Second); err != nil || !strings.Contains(said.String(), "stopping") {
			t.Fatalf("%v, the log: %q", err, said.String())
		}
	}
}
