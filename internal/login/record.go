package login

import (
	"encoding/json"
	"errors"
	"time"
)

// A record is what a store keeps of an account.
type record struct {
	URL          string    `json:"url"` // of the server
	Issuer       string    `json:"issuer"`
	TokenURL     string    `json:"token_url"`
	Resource     string    `json:"resource,omitempty"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"`
	AuthMethod   string    `json:"auth_method,omitempty"`  // of the client
	AuthMethods  []string  `json:"auth_methods,omitempty"` // that the server knows
	RedirectURI  string    `json:"redirect_uri,omitempty"` // if the client was registered for it
	AccessToken  string    `json:"access_token,omitempty"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"` // a little before the token expires; zero if unknown

	registration string // where clients are registered
}

// parse returns the record in a document, or none if it is of another server or
// client.
func (a *Account) parse(document []byte) (r record, err error) {
	if len(document) == 0 {
		return r, nil
	}
	if json.Unmarshal(document, &r) != nil {
		return record{}, errors.New("the token store has a document that we did not write")
	}
	if r.URL != a.cfg.URL || a.cfg.ClientID != "" && r.ClientID != a.cfg.ClientID {
		return record{}, nil
	}
	return r, nil
}

// document returns the JSON of r, or old if r is empty.
func (r record) document(old []byte) []byte {
	if r.URL == "" {
		return old
	}
	document, err := json.Marshal(r)
	if err != nil {
		return old // can't be: all are strings and times
	}
	return document
}

// usable reports whether the access token can be sent, given the header that was
// just refused.
func (r record) usable(refused string) bool {
	return r.AccessToken != "" && r.header() != refused && (r.ExpiresAt.IsZero() || time.Now().Before(r.ExpiresAt))
}

func (r record) header() string {
	if r.AccessToken == "" {
		return ""
	}
	return "Bearer " + r.AccessToken
}
