package mcphybrid

// An owner is who tools belong to: the system or one user. Owners are compared by
// address.
type owner struct {
	user string // "" for the system
}

// An origin is where tools come from: a server, or a group without a connection.
type origin struct {
	of     *owner
	server string
}

func (t *BridgeTool) origin() origin { return origin{t.owner, t.def.Server} }
