package project

import (
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store/storetest"
)

// What belongs to a project is counted in indexes of it: neither all sessions nor all files
// are read.
func TestOverviewsCountInIndexes(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	plan := storetest.Plan(t, storetest.Open(t, core.System{}), counted, 0, "%", "", 50, 0)
	for _, step := range plan {
		if strings.HasPrefix(step.Detail, "SCAN") && step.Detail != "SCAN p" && step.Detail != "SCAN projects" {
			t.Errorf("%s", step.Detail)
		}
	}
	if len(plan) < 4 {
		t.Errorf("%+v", plan)
	}
}
