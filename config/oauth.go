package config

import (
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
		if kind(raw) == "object" {
			e.oauth(key)
		}
		e.take(key, new(map[string]any), "an object")
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

// oauth takes the members of key, which is an object.
func (e *entry) oauth(key string) {
	members := e.open(key)
	if string(e.values[key+".enabled"]) == "false" { // Gemini CLI
		return
	}
	e.signsIn()
	for _, member := range members {
		switch folded := fold(strings.TrimPrefix(member, key)); {
		case e.oauthSetting(member, folded):
		case folded == "enabled":
			e.take(member, new(bool), "true or false")
		default:
			e.unknown(member)
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
		"granttype": &to.GrantType, "privatekey": &to.PrivateKey, "keyid": &to.KeyID,
		"clientid": &to.ClientID, "clientmetadataurl": &to.ClientMetadataURL, "clientsecret": &to.ClientSecret, "redirecturi": &to.RedirectURI, "callbackurl": &to.RedirectURI, "resource": &to.Resource,
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
