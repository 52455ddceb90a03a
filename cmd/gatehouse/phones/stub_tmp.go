package phones

import (
	"net/http"

	"gatehouse/connectors/telegram/telegramtest"
)

func Handler(sim *telegramtest.Server) (http.Handler, error) { return sim, nil }
