package clients

import (
	"encoding/json"
	"fmt"
	"strings"
)

// signIn takes the settings for signing in, in the words of any client.
func (e *entry) signIn() {
	for _, key := range []string{"oauth", "auth"} {
		raw := e.values[key]
		if string(raw) == "false" { // opencode: never sign in
			delete(e.values, key)
			continue
		}
		var given map[string]json.RawMessage
		if !e.take(key, &given, "an object") {
			continue
		}
		settings, err := parseObject(raw)
		if err != nil {
			e.problem("%q: %w", key, err)
			continue
		}
		e.oauth(key, settings)
	}
	if scopes, ok := e.list("scopes"); ok { // Codex
		e.signsIn().Scopes = scopes
	}
	if resource := e.string("oauth_resource"); resource != "" {
		e.signsIn().Resource = resource
	}
}

// signsIn returns the settings of a server that signs in.
func (e *entry) signsIn() *OAuth {
	if e.OAuth == nil {
		e.OAuth = new(OAuth)
	}
	return e.OAuth
}

func (e *entry) oauth(key string, settings object) {
	if string(settings.values["enabled"]) == "false" { // Gemini CLI
		return
	}
	to := e.signsIn()
	into := map[string]*string{
		"clientid": &to.ClientID, "clientsecret": &to.ClientSecret, "redirecturi": &to.RedirectURI, "resource": &to.Resource,
		"authservermetadataurl": &to.MetadataURL, "authorizationurl": &to.AuthorizationURL, "authorizationendpoint": &to.AuthorizationURL,
		"tokenurl": &to.TokenURL, "tokenendpoint": &to.TokenURL,
	}
	for _, name := range settings.names {
		raw, full := settings.values[name], key+"."+name
		e.values[full] = raw
		switch folded := fold(name); {
		case into[folded] != nil:
			*into[folded] = e.string(full)
		case folded == "scope" || folded == "scopes":
			if kind(raw) == "string" {
				to.Scopes = strings.Fields(e.string(full))
			} else if scopes, ok := e.list(full); ok {
				to.Scopes = scopes
			}
		case folded == "callbackport":
			var port uint16
			if e.take(full, &port, "a port") {
				to.RedirectURI = fmt.Sprintf("http://localhost:%d/callback", port)
			}
		case folded == "enabled":
			e.flag(full)
		default:
			delete(e.values, full)
			e.note("server %q: %q is not known here and has no effect", e.Name, full)
		}
	}
}
