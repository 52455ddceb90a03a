package provider

import "testing"

func TestOwnTransportUsesNoProxyAndHasTimeouts(t *testing.T) {
	tr := transport()
	if tr.Proxy != nil {
		t.Error("the transport would read HTTP_PROXY")
	}
	if tr.ResponseHeaderTimeout == 0 || tr.TLSHandshakeTimeout == 0 {
		t.Error("a time-out is missing")
	}
}
