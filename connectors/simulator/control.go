package simulator

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"gatehouse/core"
)

// ControlPath is where the control interface is: JSON over HTTP. An error is
// {"error": "<words>"} with a status to match.
const ControlPath = "/control/"

// maxControl bounds the body of one control.
const maxControl = 32 << 20

// ServeControl answers one request of the control interface. play finds the
// control of that name, such as "POST send", and gives its result; one that is
// an http.HandlerFunc answers on its own. The interface is for programs: a
// request with an Origin, or with a Host that is not loopback, comes by way of
// a browser and is refused.
func ServeControl(w http.ResponseWriter, r *http.Request, play func(name string) (any, error)) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if r.Header.Get("Origin") != "" || !loopback(host) {
		reply(w, nil, core.Errorf(core.Denied, "the control interface is not for browsers"))
		return
	}
	result, err := play(r.Method + " " + strings.TrimPrefix(r.URL.Path, ControlPath))
	if serve, ok := result.(http.HandlerFunc); ok && err == nil {
		serve(w, r)
		return
	}
	reply(w, result, err)
}

// reply writes one answer of the control interface.
func reply(w http.ResponseWriter, result any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := map[core.Kind]int{core.Invalid: 400, core.Denied: 403, core.NotFound: 404, core.Conflict: 409, core.TooLarge: 413, core.Busy: 503}[core.KindOf(err)]
		if status == 0 {
			status = 500
		}
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
		return
	}
	if result == nil {
		result = struct{}{}
	}
	json.NewEncoder(w).Encode(result)
}

// ReadControl reads the body of a control, at most 32 MB.
func ReadControl(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return nil, core.Errorf(core.TooLarge, "the body is larger than 32 MB")
	}
	if err != nil {
		return nil, unfit(err)
	}
	return b, nil
}

// DecodeControl makes a body into v.
func DecodeControl(body json.RawMessage, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return unfit(err)
	}
	return nil
}

func unfit(err error) error {
	return core.Errorf(core.Invalid, "the body does not fit: %v", err)
}
