package mcphybrid

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// An asked is what a page is asked for. Its fields are the parameters of the
// query.
type asked struct {
	View     string // one of debugViews
	Query    string // of a search, or what tools are filtered by
	Server   string // whose tools
	Standing string // of tools
	Sort     string // one of debugSorts
	Name     string // registered, of a tool
	Page     int    // of a list, from 1
	Session  int    // number
	Refresh  int    // seconds after which the page is loaded again; 0 for never
}

var (
	debugViews     = []string{"overview", "tools", "tool", "search", "sessions", "session", "problems"}
	debugSorts     = []string{"order", "name", "server", "tokens"}
	debugStandings = []string{"inline", "summarized", "deferred", "active", "hidden", "quarantined"}
)

// maxAsked is how many bytes a query may have.
const maxAsked = 8 << 10

// parseAsked reads the query of a URL.
func parseAsked(query string) (a asked, err error) {
	if len(query) > maxAsked {
		return a, fmt.Errorf("the query has %d bytes, more than the limit of %d", len(query), maxAsked)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return a, fmt.Errorf("the query: %w", err)
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
	a = asked{
		View: oneOf("view", debugViews), Standing: oneOf("standing", debugStandings), Sort: oneOf("sort", debugSorts),
		Query: values.Get("q"), Server: values.Get("server"), Name: values.Get("name"),
		Page: number("page", 1, 1e9), Session: number("session", 0, 1e9), Refresh: number("refresh", 0, 3600),
	}
	if a.View == "" {
		a.View = debugViews[0]
	}
	return a, err
}

// values returns a as the parameters of a query, without those that say nothing.
func (a asked) values() url.Values {
	values := make(url.Values)
	set := func(name, value string, given bool) {
		if given {
			values.Set(name, value)
		}
	}
	set("view", a.View, a.View != debugViews[0])
	set("q", a.Query, a.Query != "")
	set("server", a.Server, a.Server != "")
	set("standing", a.Standing, a.Standing != "")
	set("sort", a.Sort, a.Sort != "")
	set("name", a.Name, a.Name != "")
	set("page", strconv.Itoa(a.Page), a.Page > 1)
	set("session", strconv.Itoa(a.Session), a.Session > 0)
	set("refresh", strconv.Itoa(a.Refresh), a.Refresh > 0)
	return values
}

// link returns the address of what is asked for, relative to any of the pages.
func (a asked) link() string { return "?" + a.values().Encode() }

// To returns the address of a view of the same session.
func (a asked) To(view string) string {
	return asked{View: view, Session: a.Session, Refresh: a.Refresh}.link()
}

// ToSession, ToServer and the others return the address of something.
func (a asked) ToSession(number int) string {
	return asked{View: "session", Session: number, Refresh: a.Refresh}.link()
}

func (a asked) ToServer(name string) string {
	return asked{View: "tools", Server: name, Session: a.Session, Refresh: a.Refresh}.link()
}

func (a asked) ToTool(name string) string {
	return asked{View: "tool", Name: name, Session: a.Session, Refresh: a.Refresh}.link()
}

func (a asked) ToPage(page int) string {
	a.Page = page
	return a.link()
}

func (a asked) Sorted(by string) string {
	a.Sort, a.Page = by, 0
	return a.link()
}

func (a asked) Standings(standing string) string {
	a.Standing, a.Page = standing, 0
	return a.link()
}

func (a asked) Refreshed(seconds int) string {
	a.Refresh = seconds
	return a.link()
}
