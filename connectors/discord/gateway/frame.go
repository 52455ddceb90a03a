package gateway

import (
	"encoding/json"
	"strconv"

	"gatehouse/core"
)

// The gateway's opcodes
// (https://discord.com/developers/docs/topics/opcodes-and-status-codes).
const (
	opDispatch     = 0
	opHeartbeat    = 1
	opIdentify     = 2
	opResume       = 6
	opReconnect    = 7
	opInvalid      = 9
	opHello        = 10
	opHeartbeatACK = 11
)

// Close codes after which connecting again can't help
// (https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes).
const (
	CloseAuthentication  = 4004
	CloseInvalidShard    = 4010
	CloseShardingNeeded  = 4011
	CloseInvalidVersion  = 4012
	CloseInvalidIntents  = 4013
	CloseDisallowIntents = 4014
)

// Close codes after which the session is gone and a new one must be started.
const (
	CloseNotAuthenticated = 4003
	CloseInvalidSeq       = 4007
	CloseSessionTimedOut  = 4009
)

type frame struct {
	Op int             `json:"op"`
	D  json.RawMessage `json:"d"`
	S  int64           `json:"s"`
	T  string          `json:"t"`
}

// frame acts on one message from the platform.
func (k *conn) frame(raw []byte, s Session) error {
	var f frame
	if err := json.Unmarshal(raw, &f); err != nil {
		return k.take(lenient(raw, err))
	}
	switch f.Op {
	case opDispatch:
		return k.take(Event{Seq: f.S, Type: f.T, Data: f.D})
	case opHeartbeat:
		return k.beat()
	case opReconnect:
		return ErrReconnect
	case opInvalid:
		var resumable bool
		if json.Unmarshal(f.D, &resumable) != nil {
			resumable = false
		}
		return Invalid{resumable}
	case opHello:
		return k.hello(f.D, s)
	case opHeartbeatACK:
		k.acked = true
		k.c.Alive()
	}
	return nil // opcodes of later times say nothing to us
}

func (k *conn) take(e Event) error {
	k.welcome = nil
	if !k.c.Take(e) {
		return ErrFull
	}
	return nil
}

var (
	seqField  = core.Pattern(`"s"\s*:\s*([0-9]{1,18})\s*[,}]`)
	typeField = core.Pattern(`"t"\s*:\s*"([A-Z_]{1,64})"`)
)

// lenient finds what it can in a frame that is no JSON of the known form.
func lenient(raw []byte, why error) Event {
	e := Event{Data: raw, Malformed: "the frame cannot be decoded: " + core.CutRunes(why.Error(), 200)}
	if m := seqField().FindSubmatch(raw); m != nil {
		if n, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil {
			e.Seq = n
		}
	}
	if m := typeField().FindSubmatch(raw); m != nil {
		e.Type = string(m[1])
	}
	return e
}
