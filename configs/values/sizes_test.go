package values

import "testing"

func TestSizesAreReadAndWritten(t *testing.T) {
	var s Sizes
	if err := s.Decode(" openai/llama3.1:8b=8192, anthropic/x = 200000,"); err != nil || s["openai/llama3.1:8b"] != 8192 || s.String() != "anthropic/x=200000,openai/llama3.1:8b=8192" {
		t.Errorf("%v, %v", s, err)
	}
	for _, bad := range []string{"openai/x", "=5", "openai/x=many", "openai/x=0", "openai/x=8k", "openai/x=1,openai/x=2"} {
		if err := s.Decode(bad); err == nil {
			t.Errorf("%q is read as %v", bad, s)
		}
	}
}
