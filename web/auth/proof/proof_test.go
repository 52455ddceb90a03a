package proof

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core/coretest"
)

func TestAProofIsOfOneKindUserPasswordAndKey(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	p := New(nil, clock)
	made := p.Make(Ticket, 7, "hash")
	c, ok := p.Read(Ticket, made)
	if !ok || c.User != 7 || c.ID == "" || !p.Proves(c, "hash") {
		t.Fatalf("%+v %v", c, ok)
	}
	if p.Proves(c, "the hash of another password") {
		t.Error("it outlives the password")
	}
	if New(nil, clock).Proves(c, "hash") {
		t.Error("another key made it")
	}
	if _, ok := p.Read(Device, made); ok {
		t.Error("a ticket is taken for a device")
	}
	if c, ok := p.Read(Device, strings.Replace(made, "code.", "device.", 1)); ok && p.Proves(c, "hash") {
		t.Error("a ticket that was renamed is taken for a device")
	}
	if c, ok := p.Read(Ticket, strings.Replace(made, ".7.", ".1.", 1)); ok && p.Proves(c, "hash") {
		t.Error("it is another user's, too")
	}
	for _, text := range []string{"", "~", made[:strings.Index(made, "~")], made + strings.Repeat("x", 200), "code.7.x.y~z", "code.x.9999999999.y~z"} {
		if c, ok := p.Read(Ticket, text); ok && p.Proves(c, "hash") {
			t.Errorf("%q", text)
		}
	}
}

// Even who could sign one could make none for later.
func TestAProofLastsNoLongerThanItsKind(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	p := New(nil, clock)
	for _, k := range []Kind{Ticket, Device} {
		made := p.Make(k, 1, "hash")
		if _, ok := p.Read(k, made); !ok {
			t.Fatal(k)
		}
		later := fmt.Sprintf("%s.1.%d.x", k.name, clock.Now().Add(k.life+time.Minute).Unix())
		if _, ok := p.Read(k, later+"~"+p.key.Sign(Claim{said: later}.signed("hash"))); ok {
			t.Errorf("%s: one that lasts longer is read", k.name)
		}
		clock.Advance(k.life)
		if _, ok := p.Read(k, made); ok {
			t.Errorf("%s: it is read after its end", k.name)
		}
	}
}
