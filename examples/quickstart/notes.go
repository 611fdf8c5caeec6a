package main

import (
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// notesServer serves a notebook that lives in memory and starts empty.
func notesServer() *server.MCPServer {
	s := newServer("notes", "Remembers notes under keys, with tags and all their versions.")
	n := &notebook{notes: map[string]*note{}}
	key := str("key", "Key of the note.", required, mcp.MinLength(1), mcp.MaxLength(200))
	tag := str("tag", "Only notes with this tag.")
	tags := strs("tags", "Tags to add.", required, mcp.MinItems(1))
	limit := integer("limit", "Most notes to return.", 1, 1000, mcp.DefaultNumber(50))

	tool(s, "put_note",
		"Remember something: save a note under a key, which may have any form, for instance a path like projects/garden. If there is a note already, this adds a new version of it, so nothing is lost.",
		locked(n, n.put), key,
		str("text", "Text of the note. Refer to other notes as [[key]].", required),
		strs("tags", "Tags to put on the note, in addition to those it has."), additive)

	query(s, "get_note", "Recall the note with a key, with its tags and the number of its version.",
		locked(n, n.get), key)

	tool(s, "append_to_note", "Append a paragraph to a note, or start a new one. Suits journals, to-do lists and logs.",
		locked(n, n.append), key, str("text", "Paragraph to append.", required, mcp.MinLength(1)), additive)

	tool(s, "delete_note", "Forget a note together with all its versions.",
		locked(n, n.remove), key)

	tool(s, "rename_note", "Give a note another key, and keep its tags and versions.",
		locked(n, n.rename), key,
		str("to", "New key, not yet in use.", required, mcp.MinLength(1), mcp.MaxLength(200)))

	query(s, "list_notes", "List the keys and tags of all notes, sorted by key, optionally only of those with a tag or a common prefix of the key.",
		locked(n, n.list), tag, str("prefix", "Only notes whose keys start with this."), limit)

	query(s, "search_notes", "Search the notes for words, which all have to occur in the key, the text or the tags. Returns an excerpt of each note around the first word.",
		locked(n, n.search),
		str("query", "Words to search for.", required, mcp.MinLength(1), mcp.MaxLength(500)), tag, limit)

	tool(s, "tag_note", "Put tags on a note to find it again by topic.",
		locked(n, n.tag), key, tags, additive, idempotent)

	tool(s, "untag_note", "Take a tag off a note.",
		locked(n, n.untag), key, str("tag", "Tag to remove.", required))

	query(s, "list_note_tags", "List all tags in use with the number of notes that have them.",
		locked(n, n.tags))

	query(s, "note_history", "List all the versions of a note that were ever saved, the oldest first, to find out how it evolved.",
		locked(n, n.history), key)

	version := integer("version", "Number of the version.", 1, 1e9, required)
	tool(s, "restore_note_version", "Restore an earlier version of a note by saving it as the newest one, which undoes the changes since.",
		locked(n, n.restore), key, version, additive)

	query(s, "diff_note_versions", "Show what changed between two versions of a note as a unified diff.",
		locked(n, n.diff), key,
		integer("from", "Number of the older version.", 1, 1e9, required),
		integer("to", "Number of the newer version, by default the newest one.", 1, 1e9))

	query(s, "note_backlinks", "Find the notes that link to a note by mentioning its key in double square brackets.",
		locked(n, n.backlinks), key)

	query(s, "export_notes", "Export all notes, or those with a tag, as a JSON document for a backup or to move them elsewhere. Contains the newest version of each note only.",
		locked(n, n.export), tag)

	tool(s, "import_notes",
		"Import notes from a JSON document in the format that the export has: an array of objects with key, text and, optionally, tags. Notes whose keys exist already are skipped unless overwrite is set, in which case they get a new version.",
		locked(n, n.load),
		str("json", "JSON document with the notes.", required),
		flag("overwrite", "Whether to add a new version to notes that exist already."), additive)

	query(s, "notes_statistics", "Get statistics on the notebook: how many notes, versions, tags and words there are, and which note is the longest.",
		locked(n, n.statistics))

	return s
}
