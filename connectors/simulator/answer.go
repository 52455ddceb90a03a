package simulator

import (
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// An Answer is what goes back over HTTP, unless a fault states otherwise.
type Answer struct {
	Status int
	Kind   string // the content's type; "" for an answer without a body
	Header http.Header
	Body   []byte
}

// Page returns what a proxy in front of a platform answers.
func Page(status int, kind, title, proxy string) Answer {
	return Answer{Status: status, Kind: kind, Body: []byte("<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" +
		title + "</h1></center>\r\n<hr><center>" + proxy + "</center>\r\n</body>\r\n</html>\r\n")}
}

// Write sends the answer.
func (a Answer) Write(w http.ResponseWriter) {
	h := w.Header()
	maps.Copy(h, a.Header)
	if a.Kind != "" {
		h.Set("Content-Type", a.Kind)
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	w.Write(a.Body)
}

// writeHalf promises the whole answer, sends half of it and cuts the connection.
func (a Answer) writeHalf(w http.ResponseWriter) {
	c, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	var b strings.Builder
	a.Header.Write(&b)
	buf.WriteString("HTTP/1.1 " + strconv.Itoa(a.Status) + " " + http.StatusText(a.Status) + "\r\nContent-Type: " + a.Kind +
		"\r\nContent-Length: " + strconv.Itoa(len(a.Body)) + "\r\n" + b.String() + "\r\n")
	buf.Write(a.Body[:len(a.Body)/2])
	buf.Flush()
}

// cut resets the connection without an answer.
func cut(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	Sever(c)
}

// Sever ends a connection with a reset, not in order.
func Sever(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}
