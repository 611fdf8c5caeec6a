package debug

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A request says which page to show. Its fields are the parameters of the query.
type request struct {
	View     string // one of views
	Query    string // search query, or part of the names of tools to list
	Server   string // only tools or events of this server
	Standing string // one of standings: only tools with it
	Sort     string // one of sorts
	Name     string // registered name of the tool to show, or what a person calls it
	Failed   bool   // only events that are failures
	Live     bool   // send the page whenever it changes
	Deed     deed   // what to do; only a POST does it
	Page     int    // page of a list, from 1
	Session  int    // number of the session to show; 0 is the Manager's own
	Refresh  int    // seconds until the page reloads; 0 for never
}

var (
	views     = []string{"overview", "attention", "calls", "tools", "tool", "search", "why", "sessions", "session", "users"}
	sorts     = []string{"order", "name", "server", "tokens"}
	standings = []string{"inline", "summarized", "deferred", "active", "hidden", "quarantined"}
)

// maxQuery is the greatest length of a query, in bytes.
const maxQuery = 8 << 10

// parseRequest reads the query of a URL.
func parseRequest(query string) (r request, err error) {
	if len(query) > maxQuery {
		return r, fmt.Errorf("the query has %d bytes, more than the limit of %d", len(query), maxQuery)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return r, fmt.Errorf("the query: %w", err)
	}
	oneOf := func(name string, known []string) string {
		value := values.Get(name)
		if value != "" && !slices.Contains(known, value) {
			err = fmt.Errorf("%s is %.40q, must be one of %s", name, value, strings.Join(known, ", "))
		}
		return value
	}
	number := func(name string, least, most int) int {
		value := values.Get(name)
		if value == "" {
			return least
		}
		n, wrong := strconv.Atoi(value)
		if wrong != nil || n < least || n > most {
			err = fmt.Errorf("%s is %.40q, must be a number from %d to %d", name, value, least, most)
		}
		return n
	}
	r = request{
		View: oneOf("view", views), Standing: oneOf("standing", standings), Sort: oneOf("sort", sorts),
		Query: values.Get("q"), Server: values.Get("server"), Name: values.Get("name"),
		Page: number("page", 1, 1e9), Session: number("session", 0, 1e9), Refresh: number("refresh", 0, 3600),
		Failed: number("failed", 0, 1) == 1, Live: number("live", 0, 1) == 1,
		Deed: deed{Do: oneOf("do", deeds), Server: values.Get("of"), Tool: values.Get("tool"), Hash: values.Get("hash")},
	}
	if r.View == "" {
		r.View = views[0]
	}
	return r, err
}

// values returns r as query parameters. It leaves out those with default values.
func (r request) values() url.Values {
	values := make(url.Values)
	set := func(name, value string, given bool) {
		if given {
			values.Set(name, value)
		}
	}
	set("view", r.View, r.View != views[0])
	set("q", r.Query, r.Query != "")
	set("server", r.Server, r.Server != "")
	set("standing", r.Standing, r.Standing != "")
	set("sort", r.Sort, r.Sort != "")
	set("name", r.Name, r.Name != "")
	set("failed", "1", r.Failed)
	r.Deed.values(values)
	set("page", strconv.Itoa(r.Page), r.Page > 1)
	set("session", strconv.Itoa(r.Session), r.Session > 0)
	set("refresh", strconv.Itoa(r.Refresh), r.Refresh > 0)
	return values
}

// link returns the URL of the page, relative to any other page.
func (r request) link() string { return "?" + r.values().Encode() }

// To returns the URL of a view for the same session.
func (r request) To(view string) string {
	return request{View: view, Session: r.Session, Refresh: r.Refresh}.link()
}

// ToSession returns the URL of a session's page.
func (r request) ToSession(number int) string {
	return request{View: "session", Session: number, Refresh: r.Refresh}.link()
}

// ToServer returns the URL of the list of a server's tools.
func (r request) ToServer(name string) string {
	return request{View: "tools", Server: name, Session: r.Session, Refresh: r.Refresh}.link()
}

// ToTool returns the URL of a tool's page.
func (r request) ToTool(name string) string {
	return request{View: "tool", Name: name, Session: r.Session, Refresh: r.Refresh}.link()
}

// ToPage returns the URL of another page of the same list.
func (r request) ToPage(page int) string {
	r.Page = page
	return r.link()
}

// Sorted returns the URL of the same list in another order.
func (r request) Sorted(by string) string {
	r.Sort, r.Page = by, 0
	return r.link()
}

// Standings returns the URL of the list of tools with one standing.
func (r request) Standings(standing string) string {
	r.Standing, r.Page = standing, 0
	return r.link()
}

// Failures returns the URL of the same list of events, of all or of failures only.
func (r request) Failures(only bool) string {
	r.Failed, r.Page = only, 0
	return r.link()
}

// Of returns the URL of the events of one session; 0 is for those of all.
func (r request) Of(session int) string {
	return request{View: "calls", Server: r.Server, Failed: r.Failed, Session: session, Refresh: r.Refresh}.link()
}

// CallsOf returns the URL of the events of a server.
func (r request) CallsOf(server string) string {
	return request{View: "calls", Server: server, Session: r.Session, Refresh: r.Refresh}.link()
}

// Why returns the URL of the page that says why the session does not have a tool.
func (r request) Why(name string) string {
	return request{View: "why", Name: name, Query: r.Query, Session: r.Session, Refresh: r.Refresh}.link()
}

// Search returns the URL of a search as the session does it.
func (r request) Search(query string) string {
	return request{View: "search", Query: query, Session: r.Session, Refresh: r.Refresh}.link()
}

// Refreshed returns the URL of the same page, set to reload every so many seconds.
func (r request) Refreshed(seconds int) string {
	r.Refresh = seconds
	return r.link()
}
