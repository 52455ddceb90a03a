package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/core"
	"gatehouse/core/jobs"
)

func table(t *testing.T, ended func()) *jobs.Table {
	t.Helper()
	s := jobs.New(jobs.Options{Clock: core.System{}, Ended: ended})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestASecondStartJoinsTheRunningJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		s := jobs.New(jobs.Options{Clock: core.System{}, Ended: func() { ended++ }})
		runs, release := 0, make(chan struct{})
		work := func(_ context.Context, progress func(string)) (jobs.Result, error) {
			runs++
			progress("half")
			<-release
			return jobs.Result{Value: runs}, nil
		}
		for range 2 {
			if err := s.Start("a", work); err != nil {
				t.Fatal(err)
			}
		}
		if st, err := s.Wait(t.Context(), "a", time.Second); err != nil || !st.Running || st.Progress != "half" {
			t.Errorf("while it runs: %+v %v", st, err)
		}
		close(release)
		for range 2 { // the outcome is for everyone who waits
			if st, err := s.Wait(t.Context(), "a", time.Minute); err != nil || st.Running || st.Result.Value != 1 || st.Progress != "" {
				t.Errorf("at its end: %+v %v", st, err)
			}
		}
		synctest.Wait()
		if ended != 1 {
			t.Errorf("%d ends are reported", ended)
		}
		if err := s.Start("a", work); err != nil { // a new one
			t.Fatal(err)
		}
		if st, err := s.Wait(t.Context(), "a", time.Minute); err != nil || st.Result.Value != 2 {
			t.Errorf("again: %+v %v", st, err)
		}
		time.Sleep(time.Hour + time.Second)
		if n, _ := s.Prune(t.Context()); n != 1 {
			t.Errorf("%d outcomes are dropped after an hour", n)
		}
		if _, err := s.Wait(t.Context(), "a", time.Second); core.KindOf(err) != core.NotFound {
			t.Errorf("a dropped one: %v", err)
		}
		_ = s.Close()
	})
}

func TestTooManyJobsAreRefusedAndCloseEndsThem(t *testing.T) {
	s := table(t, nil)
	untilStopped := func(ctx context.Context, _ func(string)) (jobs.Result, error) {
		<-ctx.Done()
		return jobs.Result{}, ctx.Err()
	}
	for i := range 8 {
		if err := s.Start(fmt.Sprint(i), untilStopped); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Start("one more", untilStopped); core.KindOf(err) != core.Busy {
		t.Errorf("one more: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheOldestOutcomeMakesRoom(t *testing.T) {
	s := table(t, nil)
	for i := range 25 {
		key := fmt.Sprint(i)
		if err := s.Start(key, func(context.Context, func(string)) (jobs.Result, error) { return jobs.Result{}, errors.New("no") }); err != nil {
			t.Fatal(err)
		}
		if st, err := s.Wait(t.Context(), key, time.Minute); err != nil || st.Err == nil {
			t.Fatal(st, err)
		}
	}
	for key, want := range map[string]bool{"0": false, "4": false, "24": true} {
		if _, ok := s.State(key); ok != want {
			t.Errorf("%s is kept: %v", key, ok)
		}
	}
}

func TestAFileIsReadUntilItsOutcomeIsDropped(t *testing.T) {
	s := table(t, nil)
	err := s.Start("export", func(context.Context, func(string)) (jobs.Result, error) {
		f, err := jobs.Unnamed()
		if err != nil {
			return jobs.Result{}, err
		}
		_, err = f.WriteString("all of it")
		return jobs.Result{File: f, Size: 9}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(t.Context(), "export", time.Minute); err != nil {
		t.Fatal(err)
	}
	r, _, err := s.Open("export")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != "all of it" {
		t.Errorf("%q %v", b, err)
	}
	s.Drop("export")
	if _, _, err := s.Open("export"); core.KindOf(err) != core.NotFound {
		t.Errorf("a dropped one: %v", err)
	}
}
