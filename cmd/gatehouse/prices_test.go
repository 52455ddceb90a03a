package main

import (
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
)

func TestAPriceOfTheOperatorOverridesTheBuiltInOne(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, func(c *configs.Config) { c.ModelPrices = values.Prices{fakeModel: {Input: 1e6, Output: 0}} })
	w.chatEvents(map[string]any{"message": "hello"}, nil)
	if n := w.count(`SELECT count(*) FROM usage WHERE model = $1 AND input > 0 AND micro_usd = 1000000 * input`, fakeModel); n == 0 {
		t.Error("no call cost a dollar per token of input")
	}
}
