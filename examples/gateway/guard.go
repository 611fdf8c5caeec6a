package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
)

// tokenVariable is the environment variable with the bearer token.
const tokenVariable = "MCPHYBRID_GATEWAY_TOKEN"

// readToken returns the token in a file or, without one, in the environment.
func readToken(file string) (string, error) {
	if file == "" {
		return os.Getenv(tokenVariable), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("-token-file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("-token-file: %s is empty", file)
	}
	return token, nil
}

// guard admits only requests with the token, and web pages only from the
// permitted origins: a page in a browser can reach this machine too. It refuses others
// before they have sent more than a header.
func (w *website) guard(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + w.token))
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin != "" && !slices.Contains(w.origins, origin) {
			refuse(out, r, http.StatusForbidden, "this origin may not call: see -origin", smallMessage)
			return
		}
		if origin != "" {
			out.Header().Set("Access-Control-Allow-Origin", origin) // also to what we refuse ourselves
		}
		preflight := r.Method == http.MethodOptions && origin != "" // has no token
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if w.token != "" && !preflight && subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			out.Header().Set("WWW-Authenticate", "Bearer")
			refuse(out, r, http.StatusUnauthorized, "the bearer token is missing or wrong", smallMessage)
			return
		}
		if !preflight {
			stand(r.Context(), waiting)
		}
		next.ServeHTTP(out, r)
	})
}

// guardPage admits only requests with the token as the password that a browser
// asks for. The host must be the one that we listen on: otherwise, another page
// could read this one under a name of its own that leads here.
func (w *website) guardPage(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(w.token))
	own, _, _ := net.SplitHostPort(w.listener.Addr().String())
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host = strings.Trim(host, "[]"); host != own && !isLoopback(host) && w.token == "" {
			refuse(out, r, http.StatusMisdirectedRequest, "there is no such host here", smallMessage)
			return
		}
		_, password, _ := r.BasicAuth()
		got := sha256.Sum256([]byte(password))
		if w.token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			out.Header().Set("WWW-Authenticate", `Basic realm="the gateway's token as password"`)
			refuse(out, r, http.StatusUnauthorized, "the password is the gateway's token", smallMessage)
			return
		}
		if r.ContentLength != 0 {
			refuse(out, r, http.StatusBadRequest, "this request must have no body", smallMessage)
			return
		}
		stand(r.Context(), waiting)
		defer stand(r.Context(), working)()
		next.ServeHTTP(out, r)
	})
}
