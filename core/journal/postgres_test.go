package journal

import (
	"testing"

	"gatehouse/core/store/storetest"
)

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }
