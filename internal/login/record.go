package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A record is what a store keeps of an account.
type record struct {
	URL          string    `json:"url"` // of the server
	Issuer       string    `json:"issuer"`
	TokenURL     string    `json:"token_url"`
	Resource     string    `json:"resource,omitempty"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"` // if the client was registered by us
	GrantType    string    `json:"grant_type,omitempty"`    // "" if a user has logged in
	Algorithms   []string  `json:"algorithms,omitempty"`    // by which the server lets clients sign, if it says
	Trust        string    `json:"trust,omitempty"`         // in TokenURL: see [Config.trust]
	AuthMethod   string    `json:"auth_method,omitempty"`   // of the client
	AuthMethods  []string  `json:"auth_methods,omitempty"`  // that the server knows
	RedirectURI  string    `json:"redirect_uri,omitempty"`  // if the client was registered for it
	ClientScopes []string  `json:"client_scopes,omitempty"` // for which it was registered; nil for any
	RevokeURL    string    `json:"revoke_url,omitempty"`
	AccessToken  string    `json:"access_token,omitempty"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"` // a little before the token expires; zero if unknown
	Scopes       []string  `json:"scopes,omitempty"`    // that the login has
	Wanted       []string  `json:"wanted,omitempty"`    // that the server wants besides
	Tried        []string  `json:"tried,omitempty"`     // Wanted of the times before the last logins, until one granted any
	StepUps      int       `json:"step_ups,omitempty"`  // how many of the last logins in a row were for Wanted

	registration string // where clients are registered
}

// maxDocument is how many bytes the document of an account may have. Servers refuse
// headers long before.
const maxDocument = 64 << 10

// parse returns the record in a document, or none if it is of another server, grant or
// client, or if the settings name or trust another authorization server since.
func (a *Account) parse(document []byte) (record, error) {
	r, err := parse(document)
	if err != nil || r.URL != a.cfg.URL || r.GrantType != a.cfg.grantType() || a.cfg.TokenURL != "" && r.TokenURL != a.cfg.TokenURL {
		return record{}, err
	}
	if a.cfg.ClientID != "" && (r.ClientID != a.cfg.ClientID || r.Trust != a.cfg.trust()) {
		return record{}, nil
	}
	return r, nil
}

func parse(document []byte) (r record, err error) {
	switch {
	case len(document) == 0:
		return r, nil
	case len(document) > maxDocument:
		return r, fmt.Errorf("the token store has a document of %d bytes, more than the limit of %d", len(document), maxDocument)
	case json.Unmarshal(document, &r) != nil:
		return record{}, errors.New("the token store has a document that we did not write; a login to this server replaces it")
	}
	return r, nil
}

// document returns the JSON of r, or old if r is empty.
func (r *record) document(old []byte) ([]byte, error) {
	if r.URL == "" {
		return old, nil
	}
	document, err := json.Marshal(r)
	if len(document) > maxDocument {
		err = fmt.Errorf("the login has %d bytes, more than the limit of %d", len(document), maxDocument)
	}
	return document, err
}

// usable reports whether the access token can be sent, given the header that was
// just refused.
func (r *record) usable(refused string) bool {
	return r.AccessToken != "" && r.header() != refused && (r.ExpiresAt.IsZero() || time.Now().Before(r.ExpiresAt))
}

func (r *record) header() string {
	if r.AccessToken == "" {
		return ""
	}
	return "Bearer " + r.AccessToken
}
