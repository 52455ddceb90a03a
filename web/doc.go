// Package web is the HTTP furniture that the API and the admin pages share:
// handlers that return errors, one place that turns an error into an answer,
// the checks before every route (Host, Origin, body size), event
// streams, the server with its time limits, and the page of metrics.
//
// A request passes, in this order: request id, access log, recovery of panics,
// security headers, the Host check, the origin check, CORS, the mux. Nothing
// behind the mux runs for a request that a foreign web page made.
package web
