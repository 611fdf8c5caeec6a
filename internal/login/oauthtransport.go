package login

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/hosts"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// metadataURL stands for metadata that we have already.
const metadataURL = "https://metadata.invalid/"

// maxAnswer is how many bytes an answer of an authorization server has.
const maxAnswer = 1 << 20

// An oauthTransport takes requests to an authorization server and brings back answers of
// bounded size. It answers itself what we know already. An error in an answer has
// nothing but its code and its description, without what was sent.
type oauthTransport struct {
	base     http.RoundTripper
	secure   bool                          // refuse http
	metadata *transport.AuthServerMetadata // at metadataURL
	resource string                        // to ask a token for, if not ""

	home      string // where all requests go, if not ""
	anyIssuer bool   // the settings name the metadata: whatever issuer these name

	hold func(name string, values ...string) // is told of each header with a secret

	described bool                          // the metadata of the resource were seen
	scopes    []string                      // that these have
	found     *transport.AuthServerMetadata // those of an authorization server, as far as they can be read; nil if there were none
	foreign   error                         // of the first metadata that another issuer should publish, or that are out of reach; these count as not found
	promises  bool                          // an authorization server promises to name itself in its answers
	documents bool                          // an authorization server reads what a client publishes of itself
}

func (a *Account) transport() *oauthTransport {
	server, err := url.Parse(a.cfg.URL)
	return &oauthTransport{base: a.web, hold: a.hold, anyIssuer: a.cfg.MetadataURL != "", secure: err == nil && server.Scheme == "https" && !hosts.IsLoopback(server.Hostname())}
}

// named reports whether something names an authorization server, trusted or not.
func (c *oauthTransport) named() bool { return c.described || c.found != nil || c.foreign != nil }

func (c *oauthTransport) client() *http.Client {
	return &http.Client{Transport: c, Timeout: requestTimeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet || r.URL.Host != via[0].URL.Host || len(via) >= 10 {
			return fmt.Errorf("refused a redirect to host %q", r.URL.Host)
		}
		return nil
	}}
}

func (c *oauthTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() == metadataURL && c.metadata != nil {
		known, err := json.Marshal(c.metadata)
		return answer(r, http.StatusOK, known), err
	}
	if c.secure && r.URL.Scheme != "https" {
		return nil, fmt.Errorf("refused to send a request to host %q without TLS", r.URL.Host)
	}
	if c.home != "" && !sameOrigin(r.URL.String(), c.home) {
		return nil, errElsewhere
	}
	r, sent, err := c.corrected(r)
	if err != nil {
		return nil, err
	}
	c.hold("token", r.Header.Get("Authorization")) // base64 has none of its secrets
	resp, err := hostcode.Detached(r.Context(), "the request", func() (*http.Response, error) { return exchange(c.base, r) })
	if err != nil {
		if refused := (*outOfReach)(nil); errors.As(err, &refused) {
			c.foreign = cmp.Or(c.foreign, error(refused)) // mcp-go would go on without metadata
		}
		return nil, err
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var said struct {
		Error       string   `json:"error"`
		Description string   `json:"error_description"`
		Servers     []string `json:"authorization_servers"`
		Scopes      []string `json:"scopes_supported"`
		Issuer      string   `json:"issuer"`
		Promises    bool     `json:"authorization_response_iss_parameter_supported"`
		Documents   bool     `json:"client_id_metadata_document_supported"`
	}
	_ = json.NewDecoder(bytes.NewReader(data)).Decode(&said) // as mcp-go reads it
	if resp.StatusCode == http.StatusOK && r.Method == http.MethodGet {
		if from := asked(r); !c.anyIssuer && isMetadata(from) {
			if !formedFrom(from, said.Issuer) {
				c.foreign = cmp.Or(c.foreign, notOf(from, said.Issuer))
				return answer(r, http.StatusNotFound, nil), nil
			}
			c.found = new(transport.AuthServerMetadata)
			_ = json.NewDecoder(bytes.NewReader(data)).Decode(c.found)
		}
		if said.Servers != nil {
			c.described, c.scopes = true, said.Scopes
		}
		c.promises, c.documents = c.promises || said.Promises, c.documents || said.Documents
	}
	if said.Error != "" || resp.StatusCode >= http.StatusBadRequest {
		data = []byte("{}")
		if said.Error != "" {
			data, err = json.Marshal(map[string]string{"error": without(sent, said.Error), "error_description": without(sent, said.Description)})
		}
	}
	again := answer(r, resp.StatusCode, data)
	again.Header = resp.Header
	return again, err
}

// exchange sends r by base and returns the whole answer.
func exchange(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	resp, err := base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, err
}

// corrected returns r as it should be sent, and the form in it, if any. A form names
// the resource.
func (c *oauthTransport) corrected(r *http.Request) (*http.Request, url.Values, error) {
	if r.GetBody == nil {
		return r, nil, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, nil, err
	}
	var form url.Values
	if r.Header.Get("Content-Type") == "application/json" {
		data = registration(data)
	} else {
		if form, err = url.ParseQuery(string(data)); err != nil {
			return nil, nil, errors.New("the form is malformed")
		}
		if c.resource != "" {
			form.Set("resource", c.resource)
		}
		data = []byte(form.Encode())
	}
	r = r.WithContext(r.Context())
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	r.ContentLength = int64(len(data))
	r.Body, err = r.GetBody()
	return r, form, err
}

// registration returns the request to register a client as it should be sent: without an
// empty scope, which some servers refuse, and with the type of the application. Without
// that, a server that goes by OpenID takes it for "web", and refuses a redirect to this machine.
func registration(data []byte) []byte {
	var client map[string]any
	if json.Unmarshal(data, &client) != nil {
		return data
	}
	if client["scope"] == "" {
		delete(client, "scope")
	}
	client["application_type"] = "web"
	if to, _ := client["redirect_uris"].([]any); len(to) > 0 {
		if u, err := url.Parse(fmt.Sprint(to[0])); err == nil && (u.Scheme != "https" || hosts.IsLoopback(u.Hostname())) {
			client["application_type"] = "native"
		}
	}
	return text.RawJSON(client)
}

func answer(r *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// maxSaid is how many characters of an error we repeat.
const maxSaid = 300

// without returns line without the values of sent.
func without(sent url.Values, line string) string {
	for _, values := range sent {
		for _, v := range values {
			if len(v) >= 8 {
				line = strings.ReplaceAll(line, v, "[hidden]")
			}
		}
	}
	return text.Line(line, maxSaid)
}
