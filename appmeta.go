package mcphybrid

// What the definition of a tool says of apps. apps.go has their calls.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// An appMeta is what a tool's _meta says of apps: pages of its server that a host shows to
// the user (MCP Apps, the extension io.modelcontextprotocol/ui, of 2026-01-26).
type appMeta struct {
	model, app bool   // who may call the tool
	page       string // the URI of the page that shows its results, or ""
}

var forBoth = appMeta{model: true, app: true} // by default

// maxPage is how many characters the URI of a page may have.
const maxPage = 1000

// parseAppMeta reads "ui" in the _meta of a tool. It fails if who may call the tool can't be
// told: if what says so is there twice, or is not a list of names in an object.
func parseAppMeta(meta json.RawMessage) (appMeta, error) {
	of := forBoth
	values, twice := text.Fields(meta, "ui", "ui/resourceUri") // the second was its place before
	ui, page := values[0], values[1]
	if !text.IsNull(ui) && ui[0] != '{' {
		return of, errors.New("its _meta.ui is not an object")
	}
	values, twiceWithin := text.Fields(ui, "visibility", "resourceUri")
	if twice = cmp.Or(twice, twiceWithin); twice != "" {
		return of, fmt.Errorf("its _meta has the member %q more than once", twice)
	}
	if !text.IsNull(values[1]) {
		page = values[1]
	}
	if uri, _ := text.String("resourceUri", page); strings.HasPrefix(uri, "ui://") && uri == text.Line(uri, maxPage) {
		of.page = uri // we ignore what is none
	}
	if visibility := values[0]; !text.IsNull(visibility) {
		var names []string
		if err := json.Unmarshal(visibility, &names); err != nil {
			return of, fmt.Errorf(`its _meta.ui.visibility is not a list of "model" and "app": %w`, text.JSONError(visibility, err))
		}
		of.model, of.app = slices.Contains(names, "model"), slices.Contains(names, "app")
	}
	return of, nil
}
