package clients

import (
	"encoding/json"
	"fmt"
	"strings"
)

// signIn takes the settings for signing in, in the words of any client.
func (e *entry) signIn(names []string) {
	for _, key := range []string{"oauth", "auth"} {
		raw := e.values[key]
		switch string(raw) {
		case "true", `"oauth"`: // crush, and others: sign in
			e.signsIn()
			fallthrough
		case "false": // opencode: never
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
	for _, name := range names { // oauth_resource of Codex, oauth_client_id of crush
		if setting, ok := strings.CutPrefix(fold(name), "oauth"); ok && e.values[name] != nil {
			e.oauthSetting(name, setting)
		}
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
	e.signsIn()
	for _, name := range settings.names {
		full := key + "." + name
		e.values[full] = settings.values[name]
		switch folded := fold(name); {
		case e.oauthSetting(full, folded):
		case folded == "enabled":
			e.flag(full)
		default:
			delete(e.values, full)
			e.note("server %q: %q is not known here and has no effect", e.Name, full)
		}
	}
}

// oauthSetting takes key, whose name among the settings for signing in is folded. It
// reports whether there is such a setting.
func (e *entry) oauthSetting(key, folded string) bool {
	to := new(OAuth)
	if e.OAuth != nil {
		to = e.OAuth
	}
	into := map[string]*string{
		"clientid": &to.ClientID, "clientsecret": &to.ClientSecret, "redirecturi": &to.RedirectURI, "resource": &to.Resource,
		"authservermetadataurl": &to.MetadataURL, "authorizationurl": &to.AuthorizationURL, "authorizationendpoint": &to.AuthorizationURL,
		"tokenurl": &to.TokenURL, "tokenendpoint": &to.TokenURL,
	}
	switch raw := e.values[key]; {
	case into[folded] == nil && folded != "scope" && folded != "scopes" && folded != "callbackport":
		return false
	case string(raw) == "null":
		delete(e.values, key)
		return true
	case into[folded] != nil:
		*into[folded] = e.string(key)
	case folded == "callbackport":
		var port uint16
		if e.take(key, &port, "a port") {
			to.RedirectURI = fmt.Sprintf("http://localhost:%d/callback", port)
		}
	case kind(raw) == "string":
		to.Scopes = strings.Fields(e.string(key))
	default:
		if scopes, ok := e.list(key); ok {
			to.Scopes = scopes
		}
	}
	e.OAuth = to
	return true
}
