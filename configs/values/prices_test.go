package values

import "testing"

func TestPricesAreReadAndWritten(t *testing.T) {
	var p Prices
	if err := p.Decode(" openai/llama3.1:8b=0.1:0.25, anthropic/x = 0 : 15,"); err != nil || p["openai/llama3.1:8b"] != (Price{0.1, 0.25}) || p.String() != "anthropic/x=0:15,openai/llama3.1:8b=0.1:0.25" {
		t.Errorf("%v, %v", p, err)
	}
	for _, bad := range []string{"openai/x", "mistral=1:1", "openai/=1:1", "=5:1", "openai/x=5", "openai/x=a:1", "openai/x=1:-1", "openai/x=NaN:1", "openai/x=1:Inf", "openai/x=1:1e7", "openai/x=1:2:3", "openai/x=1:1,openai/x=2:2"} {
		if err := p.Decode(bad); err == nil {
			t.Errorf("%q is read as %v", bad, p)
		}
	}
}
