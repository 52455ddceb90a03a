package main

import (
	"errors"
	"testing"
	"time"
)

// A part that hangs, as one does that waits for a file server, must not keep a gateway that was replaced.
func TestAGatewayThatWasReplacedEndsAlsoWhenAPartOfItHangs(t *testing.T) {
	t.Parallel()
	var c closers
	taken, exited, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c.within(time.Millisecond, taken, func() { close(exited) })
	c.closing(func() error { <-goOn; return nil })
	ended := make(chan error, 1)
	close(taken)
	go func() { ended <- c.Close() }()
	<-exited
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAGatewayThatEndsInTimeIsNotEndedByForce(t *testing.T) {
	t.Parallel()
	var c closers
	taken := make(chan struct{})
	c.within(time.Hour, taken, func() { t.Error("it was ended by force") })
	failed := errors.New("no")
	c.closing(func() error { return failed })
	close(taken)
	if err := c.Close(); !errors.Is(err, failed) {
		t.Error(err)
	}
}
