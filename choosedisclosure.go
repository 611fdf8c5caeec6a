package mcphybrid

import (
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/request"
)

// A disclosureReason is why a disclosure was chosen.
type disclosureReason uint8

const (
	becauseAsked disclosureReason = iota
	becauseModelTakesTools
	becauseNoSearchTool
	becauseNoCallTool
	becauseNothingDeferred
	becauseNoModelNamed
	becauseModelTakesNone
)

var reasons = [...]string{
	"the host asked for it", "this model takes tools inside the conversation", "the session may not search, so no tool is deferred",
	"the session may not use the call tool", "no tool is deferred", "the model is not named, and not all take tools inside the conversation",
	"the model does not take tools inside the conversation",
}

func (r disclosureReason) String() string { return reasons[r] }

// mayOmitBridge reports whether the first Turn may do without a tool that calls others, if
// all servers have listed their tools.
func (s *Session) mayOmitBridge(form *request.Form, model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transcriptCopy().begun || s.asked.disclosure != Automatic {
		return false
	}
	_, _, why := s.viewLocked().choose(form, model, true)
	return why == becauseNothingDeferred
}

// checkDisclosure returns an error unless the form and the model can do what a disclosure needs. A model
// that is not known may be able to.
func checkDisclosure(form *request.Form, model string, d Disclosure, adds bool) error {
	switch {
	case d == ByAddition && !(adds && form.CanAdd()):
		return fmt.Errorf("the format %s has no tools inside a conversation, which a session by addition needs", form.Format())
	case d == ByProvider && !form.CanDefer():
		return fmt.Errorf("the format %s can't defer tools, which a session by provider needs", form.Format())
	case adds && form.Refuses(model):
		return fmt.Errorf("the model %s takes no tools inside a conversation, which a session by %s needs", model, d)
	}
	return nil
}

// fixDisclosure chooses the disclosure and fixes it. What was shown before stays, if the model can
// go on with it. complete is set if all servers have listed their tools. The caller holds
// mu, and v is how it sees the session.
func (s *Session) fixDisclosure(v *view, form *request.Form, model string, complete bool) error {
	d, why := s.asked.disclosure, becauseAsked
	noBridge := false
	if d == Automatic {
		d, noBridge, why = v.choose(form, model, complete)
	}
	loads := d == ByProvider && form.Searches()
	adds := d == ByAddition || d == ByProvider && form.Adds(model) || loads // models with tool_search take tools
	if err := checkDisclosure(form, model, d, adds); err != nil {
		return err
	}
	s.disclosure.Store(int32(d))
	s.transcript = &transcript{noBridge: noBridge, adds: adds, loads: loads, form: form, why: why}
	if d == ByBridge && s.asked.disclosure == Automatic || loads { // what was shown has other tools of ours
		s.setShown(nil, nil)
		s.full, s.overflow = false, nil
		s.refit(v.partition)
	}
	return nil
}

// choose returns the disclosure that costs least over a whole conversation among those
// that work with a format and a model. BENCHMARKS has the figures.
func (v *view) choose(form *request.Form, model string, complete bool) (d Disclosure, noBridge bool, why disclosureReason) {
	searches := mayUse(v.rights, SearchToolName)
	switch {
	case form.Adds(model):
		return ByAddition, false, becauseModelTakesTools
	case !searches:
		return ByBridge, true, becauseNoSearchTool
	case !mayUse(v.rights, CallToolName):
		return ByActivation, false, becauseNoCallTool
	case !v.searchMode() && complete:
		return ByBridge, true, becauseNothingDeferred
	case model == "" && form.CanAdd():
		return ByBridge, false, becauseNoModelNamed
	}
	return ByBridge, false, becauseModelTakesNone
}
