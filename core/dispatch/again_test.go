package dispatch

import (
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
)

func TestAFailedAnswerAsksOnceToTryAgain(t *testing.T) {
	for _, reason := range []string{"The model provider is out of reach. Please try again later.", "Something went wrong."} {
		text := (&Dispatcher{}).answered(orchestrator.Result{Terminal: core.Failed{Message: reason, CanRetry: true}})
		if strings.Count(text, "try again") != 1 {
			t.Errorf("%q", text)
		}
	}
}
