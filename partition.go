package mcphybrid

// partition divides tools, which are in registration order, into those that
// the model sees from the start and those that it has to search for. Up to
// limit tools are all inline. Above it, the pinned ones are inline, however
// many they are, and the first others fill what is left of limit. Both lists
// keep registration order.
func partition(tools []*BridgeTool, limit int, pinned func(*BridgeTool) bool) (inline, deferred []*BridgeTool) {
	if len(tools) <= limit {
		return tools, nil
	}
	free := limit
	for _, t := range tools {
		if pinned(t) {
			free--
		}
	}
	for _, t := range tools {
		switch {
		case pinned(t):
			inline = append(inline, t)
		case free > 0:
			inline = append(inline, t)
			free--
		default:
			deferred = append(deferred, t)
		}
	}
	return inline, deferred
}
