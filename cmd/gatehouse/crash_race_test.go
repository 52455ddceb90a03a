//go:build race

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
)

// The program itself runs under the race detector here, where the tests do:
// a few rounds of kills, then a stop under load.
func TestCrashTheProgramHasNoDataRace(t *testing.T) {
	t.Parallel()
	seed := number(t, "GATEHOUSE_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("GATEHOUSE_TEST_SEED=%d repeats the random choices", seed)
	r := newRig(t, program(t, "-race"), "collect", crashPeople, telegramtest.Options{})
	k := newKiller(r, seed)
	k.acquaint()
	for _, point := range []string{afterPut, inTheRun, afterAck, inTheSend, readBack} {
		k.round(point)
	}
	r.start()
	for i := range r.chats {
		r.post(i)
	}
	r.stop()
	r.start()
	r.answered()
	r.stop()
	r.prove()
	log, err := os.ReadFile(filepath.Join(r.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if at := bytes.Index(log, []byte("WARNING: DATA RACE")); at >= 0 {
		t.Errorf("%s", log[at:min(len(log), at+4000)])
	}
}
