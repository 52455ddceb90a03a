package admin

import (
	"testing"
)

func TestTemplatesParse(t *testing.T) {
	if err := New(nil, nil, Options{}).Check(); err != nil {
		t.Error(err)
	}
}
