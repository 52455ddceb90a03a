package discord

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testToken is of the platform's form: the id 1000000000000000001, a time, a
// signature. It opens nothing.
const testToken = "MTAwMDAwMDAwMDAwMDAwMDAwMQ.GtEsTx.not-a-real-signature-0123456789abcdef"
