package streamhttp

import (
	"net/http"

	"github.com/berth-dev/berth/adapters/ws"
)

const methods = "POST, GET, DELETE, OPTIONS"

// allowOrigin tells a browser that the page whose request the guard let pass
// may read the answer. There is no wildcard. Cookies belong to proxies alone:
// nothing here reads one.
func allowOrigin(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", ws.HeaderConnection+", "+HeaderSession+", X-Request-Id, Retry-After")
}

// preflight answers a browser's question before a request, and OPTIONS of
// others.
func preflight(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Allow", methods)
	if r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != "" {
		head.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
		head.Set("Access-Control-Allow-Methods", methods)
		head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, "+ws.HeaderConnection+", "+HeaderSession)
		head.Set("Access-Control-Max-Age", "600")
		if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
			head.Set("Access-Control-Allow-Private-Network", "true")
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
