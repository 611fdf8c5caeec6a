package main

import (
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// issuesServer serves an issue tracker that lives in memory and starts empty.
func issuesServer() *server.MCPServer {
	s := newServer("issues", "Tracks bugs, feature requests and tasks of a project, with comments, labels, milestones and links.")
	t := &tracker{milestones: map[string]*milestone{}}
	number := integer("number", "Number of the issue.", 1, maxIssues, required)
	state := func(byDefault string) mcp.ToolOption {
		return str("state", "Whether to consider open issues, closed ones or both.",
			mcp.Enum("open", "closed", "all"), mcp.DefaultString(byDefault))
	}
	limit := integer("limit", "Most issues to return.", 1, 200, mcp.DefaultNumber(30))

	tool(s, "create_issue",
		"Open a new issue in the tracker to report a bug, request a feature or plan a task. Returns the issue with its number, which all the other tools ask for.",
		locked(t, t.create),
		str("title", "One line that summarizes the issue.", required, mcp.MinLength(1), mcp.MaxLength(250)),
		str("body", "Complete description: steps to reproduce, expected and actual behavior, ideas."),
		strs("labels", "Labels to put on the issue, such as bug or documentation."),
		str("assignee", "User who should work on it."),
		str("priority", "How urgent it is.", mcp.Enum(priorities...), mcp.DefaultString("normal")),
		additive)

	query(s, "get_issue", "Get everything about one issue: description, state, labels, assignees, milestone, links and comments.",
		locked(t, t.get), number)

	query(s, "list_issues",
		"List the issues of the project, newest first, optionally only those with a given state, label, assignee or milestone. Descriptions and comments are left out to keep the list short; get a single issue to read them.",
		locked(t, t.list),
		state("open"),
		str("label", "Only issues with this label."),
		str("assignee", "Only issues assigned to this user."),
		str("milestone", "Only issues of this milestone."),
		str("sort", "Order of the list.", mcp.Enum("newest", "oldest", "updated", "priority", "comments"), mcp.DefaultString("newest")),
		limit)

	query(s, "search_issues",
		"Full-text search for issues that mention all the given words in title, description or comments. Use it before you report a bug, to see whether somebody else already has.",
		locked(t, t.search),
		str("query", "Words to search for.", required, mcp.MinLength(1), mcp.MaxLength(500)), state("all"), limit)

	tool(s, "update_issue", "Change the title, description or priority of an issue. What is not given stays as it is.",
		locked(t, t.update), number,
		str("title", "New title.", mcp.MinLength(1), mcp.MaxLength(250)),
		str("body", "New description."),
		str("priority", "New priority.", mcp.Enum(priorities...)), idempotent)

	tool(s, "close_issue", "Close an issue because it is done or because it will not be worked on.",
		locked(t, t.closeIssue), number,
		str("reason", "Why it is closed.", mcp.Enum("completed", "not_planned"), mcp.DefaultString("completed")),
		str("comment", "Closing comment to leave on the issue."), additive)

	tool(s, "reopen_issue", "Reopen a closed issue, for instance after a regression.",
		locked(t, t.reopen), number, additive)

	tool(s, "delete_issue", "Remove an issue with all its comments from the tracker for good. Prefer closing it, which keeps the history.",
		locked(t, t.remove), number)

	tool(s, "add_comment", "Comment on an issue to add information, ask a question or record progress.",
		locked(t, t.comment), number,
		str("body", "Text of the comment.", required, mcp.MinLength(1)),
		str("author", "User who writes it.", mcp.DefaultString("agent")), additive)

	query(s, "list_comments", "Read the discussion of an issue, the oldest comment first.",
		locked(t, t.comments), number)

	tool(s, "add_labels", "Put labels on an issue to classify it. Labels that do not exist yet are created on the fly, and those the issue already has are ignored.",
		locked(t, t.addLabels), number,
		strs("labels", "Labels to add.", required, mcp.MinItems(1)), additive, idempotent)
	tool(s, "remove_label", "Take a label off an issue.",
		locked(t, t.removeLabel), number, str("label", "Label to remove.", required))
	query(s, "list_labels", "List all the labels in use with the number of open and closed issues that have them.",
		locked(t, t.labels))

	assignee := str("assignee", "Name of the user.", required, mcp.MinLength(1), mcp.MaxLength(100))
	tool(s, "assign_issue", "Assign an issue to a user, who becomes responsible for it. Several users may share an issue.",
		locked(t, t.assign), number, assignee, additive, idempotent)
	tool(s, "unassign_issue", "Take an issue away from a user it is assigned to.",
		locked(t, t.unassign), number, assignee)

	tool(s, "create_milestone", "Create a milestone such as a release or a sprint, which groups the issues to finish by then.",
		locked(t, t.createMilestone),
		str("title", "Unique title of the milestone.", required, mcp.MinLength(1), mcp.MaxLength(100)),
		str("due", "Date when it is due, as YYYY-MM-DD.", mcp.Pattern(`^\d{4}-\d{2}-\d{2}$`)), additive)
	query(s, "list_milestones", "List the milestones with due date and progress, that is, how many of their issues are open and closed.",
		locked(t, t.listMilestones))
	tool(s, "set_milestone", "Plan an issue for a milestone, or take it out of its milestone by giving none.",
		locked(t, t.setMilestone), number,
		str("milestone", "Title of the milestone, empty for none.", mcp.DefaultString("")), idempotent)

	tool(s, "link_issues",
		"Record how one issue relates to another: that it blocks it, is its parent, or just has to do with it. The link shows up on both issues, from the point of view of each.",
		locked(t, t.link), number,
		integer("other", "Number of the other issue.", 1, maxIssues, required),
		str("relation", "What the first issue is to the other one.", required, mcp.Enum("blocks", "parent_of", "relates_to")), additive, idempotent)
	tool(s, "mark_duplicate", "Close an issue as a duplicate of another one that reports the same problem, and link the two.",
		locked(t, t.markDuplicate), number,
		integer("original", "Number of the issue that stays open.", 1, maxIssues, required), additive)

	query(s, "issue_timeline", "Show the history of an issue, everything that happened to it in order.",
		locked(t, t.timeline), number)
	query(s, "issue_statistics", "Get statistics for a report on the project: how many issues are open and closed, by priority, label and assignee, and which open issues are the most discussed.",
		locked(t, t.statistics))

	return s
}
