package web

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
	"github.com/mcphybrid/mcphybrid/internal/hosts"
)

// guard admits only requests with a token, and web pages only from the
// permitted origins and our own: a page in a browser can reach this machine too. It refuses
// others before they have sent more than a header.
func (w *Site) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin != "" && origin != w.own && !slices.Contains(w.Origins, origin) {
			refuse(out, r, http.StatusForbidden, "this origin may not call: see -origin", limits.SmallMessage)
			return
		}
		if origin != "" {
			out.Header().Set("Access-Control-Allow-Origin", origin) // also to what we refuse ourselves
		}
		if !w.isHost(r) {
			refuse(out, r, http.StatusForbidden, fmt.Sprintf("there is no host %q here: see -host", plain.Printable(r.Host, plain.MaxName)), limits.SmallMessage)
			return
		}
		preflight := r.Method == http.MethodOptions && origin != "" // has no token
		who := w.Tokens.Holder(tokens.Bearer(r))
		if w.Tokens.AreNeeded() && !preflight && who == nil {
			w.figures.CountUnauthorized()
			out.Header().Set("WWW-Authenticate", "Bearer")
			refuse(out, r, http.StatusUnauthorized, "the bearer token is missing or wrong", limits.SmallMessage)
			return
		}
		if !preflight {
			stand(r.Context(), waiting)
		}
		ctx, release := tokens.With(r.Context(), who)
		defer release()
		next.ServeHTTP(out, r.WithContext(ctx))
	})
}

// isHost reports whether the host that a request names may be us. A page in a browser can
// reach loopback under a name of its own, which then leads here. From elsewhere we are
// reached by whatever names there are.
func (w *Site) isHost(r *http.Request) bool {
	at, ok := hosts.Local(r)
	return !ok || !at.IsLoopback() || hosts.Permits(r, w.hosts)
}

// guardPage admits only operators, to pages about all clients. Their token is the bearer
// token, or the password that a browser asks for. If none is needed, the host must be
// loopback's: there is no other name then.
func (w *Site) guardPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !w.Tokens.AreNeeded() && !hosts.Permits(r, nil) {
			refuse(out, r, http.StatusMisdirectedRequest, "there is no such host here", limits.SmallMessage)
			return
		}
		token := tokens.Bearer(r)
		if _, password, ok := r.BasicAuth(); ok {
			token = password
		}
		who := w.Tokens.Holder(token)
		if w.Tokens.AreNeeded() && who == nil {
			w.figures.CountUnauthorized()
			out.Header().Set("WWW-Authenticate", `Basic realm="the gateway's token as password"`)
			refuse(out, r, http.StatusUnauthorized, "the password is the gateway's token", limits.SmallMessage)
			return
		}
		if who != nil && !who.Operator {
			refuse(out, r, http.StatusForbidden, "this page is about all clients: only the token of an operator opens it", limits.SmallMessage)
			return
		}
		ctx, release := tokens.With(r.Context(), who)
		defer release()
		withoutBody(next).ServeHTTP(out, r.WithContext(ctx))
	})
}

// withoutBody refuses requests with a body, and has the connection stay while others are
// answered.
func withoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			refuse(out, r, http.StatusBadRequest, "this request must have no body", limits.SmallMessage)
			return
		}
		stand(r.Context(), waiting)
		defer stand(r.Context(), working)()
		next.ServeHTTP(out, r)
	})
}
