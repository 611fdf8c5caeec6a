// Package billing tells what the requests of a conversation cost under the rules of
// providers' prompt caches.
//
// A [Reader] makes blocks of the JSON of a request, in the order in which the provider puts
// them before the model. An [Account] bills one request after the other, and says what the
// cache had of it:
//
//	reader := billing.NewReader(counter.CountTokens)
//	account := billing.Anthropic55.Open()
//	request, err := reader.ReadJSON(provider.Anthropic, body)
//	…
//	bill := account.Bill(request)
//
// It must not know where requests come from: it does not import the root package.
package billing

// A Request is all blocks of a request, in the order in which the model reads them.
type Request []Block

// A Block is the smallest part of a request at which a cached beginning can end.
type Block struct {
	ID     int // equal blocks have equal ids, others do not
	Tokens int
	Kind   Kind
	Name   string // of the tool that the block defines, or ""
}

// A Kind says what a block belongs to. In a request, kinds come in this order.
type Kind uint8

const (
	Tool Kind = iota
	System
	Message
)

// A Bill is what one request costs.
type Bill struct {
	Tokens int     // of the request
	Cached int     // of these, read from the cache
	Price  float64 // in prices of an input token

	// Lost is whether the cache did not have all of the request before, though that was long
	// enough: messages that were sent before are billed in full.
	Lost bool

	// Changed is whether the request does not begin with the whole request before. Refused is
	// whether this or an earlier request of the account changed and the provider checks that.
	// Who keeps the thinking of a changed conversation has all later requests refused.
	Changed, Refused bool
}

// An Account has what the provider remembers of one conversation. Requests must not overlap;
// an entry is kept for ever. Its methods must not be called concurrently.
type Account struct {
	rule Rule

	// A beginning of a request is a path of blocks, numbered as it first occurs; the empty one
	// is 0. beginnings leads from a beginning and the id of the next block to the longer one.
	beginnings map[step]int
	entries    []bool // by beginning: the provider has it in its cache

	before Request // nil before the first
	path   []int   // the beginnings of before, from the empty one on
	tokens int     // of before

	changed bool // ever
}

type step struct{ beginning, block int }

// Open returns an account on which nothing has been billed.
func (r Rule) Open() *Account {
	return &Account{rule: r, beginnings: make(map[step]int), entries: []bool{false}, path: []int{0}}
}

// Bill bills the next request. It keeps the request, which must not be changed.
func (a *Account) Bill(q Request) Bill {
	same := a.follow(q)
	sums := make([]int, len(q)+1) // tokens of the first n blocks
	for i, b := range q {
		sums[i+1] = sums[i] + b.Tokens
	}
	bill := Bill{Tokens: sums[len(q)], Changed: same < len(a.before)}
	points := a.points(q)
	for _, p := range points {
		bill.Cached = max(bill.Cached, a.cached(p, sums))
	}
	for _, p := range points {
		a.entries[a.path[p]] = true // those that are too short are never read
	}
	price := 1.0
	if bill.Tokens >= a.rule.Least {
		price = a.rule.Write
	}
	bill.Price = a.rule.Read*float64(bill.Cached) + price*float64(bill.Tokens-bill.Cached)
	bill.Lost = a.tokens >= a.rule.Least && bill.Cached <= a.tokens-max(a.rule.Step, 1)
	a.changed = a.changed || bill.Changed
	bill.Refused = a.changed && a.rule.PrefixCheck
	a.before, a.tokens = q, bill.Tokens
	return bill
}

// follow makes path that of q and returns how many blocks q shares with the request before.
func (a *Account) follow(q Request) (same int) {
	for same < min(len(q), len(a.before)) && q[same].ID == a.before[same].ID {
		same++
	}
	a.path = a.path[:same+1]
	for _, b := range q[same:] {
		from := step{a.path[len(a.path)-1], b.ID}
		to, known := a.beginnings[from]
		if !known {
			to = len(a.entries)
			a.beginnings[from] = to
			a.entries = append(a.entries, false)
		}
		a.path = append(a.path, to)
	}
	return same
}

// points returns behind how many blocks of q there are breakpoints, ascending.
func (a *Account) points(q Request) (points []int) {
	switch a.rule.Points {
	case Everywhere:
		for n := range q {
			points = append(points, n+1)
		}
		return points
	case AtSections:
		for n := 1; n < len(q); n++ {
			if q[n].Kind != q[n-1].Kind {
				points = append(points, n)
			}
		}
	}
	return append(points, len(q))
}

// cached returns the tokens that a breakpoint behind p blocks reads.
func (a *Account) cached(p int, sums []int) int {
	last := 1
	switch {
	case a.rule.Points == Everywhere:
		last = p // each shorter beginning is a point of its own
	case a.rule.Lookback > 0:
		last = max(1, p-a.rule.Lookback+1)
	}
	for n := p; n >= last; n-- {
		if a.entries[a.path[n]] {
			tokens := sums[n]
			if a.rule.Step > 0 {
				tokens -= tokens % a.rule.Step
			}
			if tokens >= a.rule.Least {
				return tokens
			}
		}
	}
	return 0
}
