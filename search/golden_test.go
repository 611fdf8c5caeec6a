package search

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// smallCatalog has tools of a few servers, of all kinds that rank differently.
func smallCatalog() []*Document {
	object := func(properties string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
	}
	return []*Document{
		{Server: "github", Name: "create_issue", Title: "New issue", Description: "Create an issue in a repository. Labels may be added.", InputSchema: object(`"repo":{"description":"the repository"},"title":{},"labels":{"items":{"properties":{"color":{"description":"of the label"}}}}`)},
		{Server: "github", Name: "list_issues", Description: "List the issues of a repository, open or closed", InputSchema: object(`"state":{"enum":["open","closed"]}`), ReadOnly: true},
		{Server: "github", Name: "close_issue", Description: "Close an issue"},
		{Server: "github", Name: "delete_repository", Description: "Delete a repository for good"},
		{Server: "github", Name: "get_pull_request", Description: "Details of a pull request, with its commits and reviews", ReadOnly: true},
		{Server: "github", Name: "mergePullRequest", Description: "Merges a pull request into its base branch"},
		{Server: "slack", Name: "send_message", Description: "Send a message to a channel or to a person", InputSchema: object(`"channel":{},"text":{"description":"what to say"}`)},
		{Server: "slack", Name: "list_channels", Description: "Lists all channels", Instructions: "Slack is where the team talks.", ReadOnly: true},
		{Server: "slack", Name: "upload_file", Description: "Uploads a file and shares it in a channel"},
		{Server: "mail", Name: "send_email", Description: "Sends an e-mail with attachments", Hints: "letter newsletter", InputSchema: object(`"to":{},"subject":{},"attachments":{"items":{"properties":{"path":{}}}}`)},
		{Server: "mail", Name: "search_mail", Description: "Searches the inbox by words, sender or date", ReadOnly: true},
		{Server: "calendar", Name: "create_event", Description: "Schedules a meeting in the calendar and invites guests"},
		{Server: "calendar", Name: "find_free_time", Description: "Finds a slot in which all guests are free", ReadOnly: true},
		{Server: "calendar", Name: "delete_event", Description: "Cancels a meeting"},
		{Server: "files", Name: "read_file", Description: "Reads a file. Text only.", ReadOnly: true},
		{Server: "files", Name: "write_file", Description: "Writes text into a file, replacing it"},
		{Server: "files", Name: "move_file", Description: "Moves or renames a file or folder"},
		{Server: "weather", Name: "forecast", Description: "Weather for the next days: temperature, rain and wind in a city", ReadOnly: true},
		{Server: "db", Name: "run_query", Description: "Runs SQL against the PostgreSQL database"},
		{Server: "db", Name: "describe_table", Description: "Columns and indexes of a table", ReadOnly: true},
		{Server: "maps", Name: "geocode", Description: "Coordinates of an address, 经度和纬度"},
		{Server: "地图", Name: "查询天气", Description: "查询城市的天气预报"},
		{Server: "shop", Name: "refund_payment", Description: "Refunds a payment of a customer in EUR or USD"},
		{Server: "shop", Name: "v2_orders.list", Description: "Orders of a customer, newest first", ReadOnly: true},
		{Server: "empty", Name: "", Description: ""},
		{Server: "files", Name: "read_file", Description: "Reads a file. Text only.", ReadOnly: true},
	}
}

// testdata/ranked.golden has what queries find in a small catalog, and why.
func TestRankedGolden(t *testing.T) {
	docs := smallCatalog()
	var b strings.Builder
	b.WriteString("What queries find in a small catalog: with the default ranker, why the first, what it lacks, and what the lexical one finds.\n\n")
	x, lexical := NewIndex(docs, nil), NewIndex(docs, &Options{Ranker: RankerLexical})
	shown := func(x *Index, found []Match) string {
		var list []string
		for _, m := range found {
			list = append(list, fmt.Sprintf("%s/%s %.3f", x.Document(m.Doc).Server, x.Document(m.Doc).Name, m.Score))
		}
		return strings.Join(list, ", ")
	}
	story := "We had a long day at the office and everyone was tired. The team met in the morning and talked about the weather, the food and the trains that are late again. "
	for _, query := range []string{
		"", " ", "the", "please", "get", "xyzzy", "issue", "issues", "ISSUE", "create issue", "create_issue", "createIssue", "create-issue", "github create issue", "open a new issue in the repo", "file a bug", "remove the repo", "show me the pull request", "PR", "merge the PR", "merge pull request", "mergePullRequest", "pullrequest", "pull-request reviews",
		"send", "send message", "message the team", "post to slack", "notify someone in the channel", "send an email with a file", "e-mail", "email", "mail", "newsletter", "attachments path", "label color", "state closed", "what to say",
		"schedule a meeting", "cancel the meeting", "when is everyone free?", "book", "read file", "read_file", "reed file", "wriet file", "rename", "renaming folders", "delet", "isue", "repositroy", "calender",
		"weather", "will it rain tomorrow?", "temperature", "temp", "天气", "查询", "经度", "天气预报 weather", "SQL", "postgres", "psql query", "table columns", "describe", "refund", "refunds in EUR", "v2 orders", "orders", "customer orders newest",
		"eine Nachricht senden", "créer un ticket", "enviar un correo", "das Wetter in der Stadt", "Datei lesen", "supprimer le fichier", "どんな天気", "die", "no", "den Termin absagen",
		"read the issue", "list issues", "do not delete the repository", "how do I delete a repository?", "what can I read?", "don't send, only read the mail", "delete event", "update the event", "Slack team talks",
		"Find the weather. Then send it to the channel.", "create an issue, then close it", "Create an issue. Close an issue. Delete the repository.", "List the issues; also list the channels", "Find the right tool for this. Read a file.", "First read the file, and then send an email: done!", "issue\nmessage\nfile", "Is it free? Send a message！读文件。", "a.b c", "read. file", "hi, could you please kindly read me a file",
		story + "Please read the file.", story + story + "Please send an email to the team. Thanks a lot!", story + story + story + "Merge the pull request. Then schedule a meeting.", story + story + story + "no request here at all", strings.Repeat("Send a message. ", 70) + "Read a file.", strings.Repeat("word ", 400) + "weather", "Read a file.\n" + strings.Repeat("x ", 300),
	} {
		fmt.Fprintf(&b, "%s\n", text.Line(strings.Trim(fmt.Sprintf("%q", query), `"`), 200))
		found := x.Search(query, 4, nil)
		fmt.Fprintf(&b, "   %s\n", shown(x, found))
		if len(found) > 0 {
			e := x.Explain(query, found[0].Doc)
			fmt.Fprintf(&b, "   why %.3f of %.3f:", e.Score, e.Least)
			for _, p := range e.Parts {
				fmt.Fprintf(&b, " %s %s>%s>%s %.3f;", p.Field, p.Word, p.Query, p.Term, p.Score)
			}
			b.WriteString("\n")
		}
		if e := x.Explain(query, 6); e.Missing != nil {
			fmt.Fprintf(&b, "   slack/send_message lacks %q\n", e.Missing[:min(len(e.Missing), 8)])
		}
		fmt.Fprintf(&b, "   lexical: %s; has terms %v %v\n", shown(x, lexical.Search(query, 3, nil)), x.HasTerms(query), lexical.HasTerms(query))
	}
	b.WriteString("\nHow many, and which are kept.\n\n")
	for _, n := range []int{-1, 0, 1, 2, 100} {
		fmt.Fprintf(&b, "%d: %s\n", n, shown(x, x.Search("file", n, nil)))
	}
	fmt.Fprintf(&b, "only those of mail: %s\n", shown(x, x.Search("send a file", 9, func(doc int) bool { return docs[doc].Server == "mail" })))
	fmt.Fprintf(&b, "none: %s\n", shown(x, x.Search("send a file", 9, func(int) bool { return false })))
	fmt.Fprintf(&b, "appended: %v\n", len(x.AppendSearch([]Match{{Doc: 3, Score: 9}}, "weather", 2, nil)))
	b.WriteString("\nThresholds.\n\n")
	for _, threshold := range []float64{-1, 0, DefaultThreshold, 1, 3, 100} {
		y := NewIndex(docs, &Options{Threshold: threshold})
		found := y.Search("the weather for a meeting about a file", 20, nil)
		fmt.Fprintf(&b, "%v: %d, %s\n", threshold, len(found), shown(y, found[:min(len(found), 3)]))
	}
	b.WriteString("\nA changed index finds what a new one finds.\n\n")
	y := x
	for step, change := range []func([]*Document) []*Document{
		func(d []*Document) []*Document { return d[:12] },
		func(d []*Document) []*Document {
			return append(slices.Clone(d), &Document{Server: "new", Name: "brew_coffee", Description: "Brews coffee and sends a message"})
		},
		func(d []*Document) []*Document {
			d = slices.Clone(d)
			slices.Reverse(d)
			return d
		},
		func(d []*Document) []*Document { return nil },
		func([]*Document) []*Document { return docs },
	} {
		now := change(docs)
		y = y.With(now)
		fresh := x.New(now)
		for _, query := range []string{"send a message", "coffee", "delete the repository"} {
			fmt.Fprintf(&b, "step %d, %d documents, %s: %s | %s %v\n", step, y.Len(), query, shown(y, y.Search(query, 3, nil)), shown(fresh, fresh.Search(query, 3, nil)), y.Check())
		}
	}
	b.WriteString("\nA lexicon of a host.\n\n")
	z := NewIndex(docs, &Options{Lexicon: &Lexicon{
		Stop: []string{"file"}, Faint: []string{"wish"}, Generic: []string{"send"}, Synonyms: [][]string{{"chat", "message"}}, Hints: []Hint{{From: []string{"coffee"}, To: []string{"meeting"}}},
		Abbreviations: []Hint{{From: []string{"msg"}, To: []string{"message"}}}, Requests: []string{"brew"}, Verbs: Verbs{Read: []string{"peek"}, Delete: []string{"close"}, Create: []string{"create"}, Update: []string{"move"}, Change: []string{"send"}},
		Translations: []Hint{{From: []string{"cita"}, To: []string{"meeting"}}}, Foreign: []Hint{{From: []string{"tormenta"}, To: []string{"rain"}}},
	}})
	for _, query := range []string{"file", "wish a meeting", "send", "chat", "message", "msg", "coffee", "meeting", "cita", "tormenta", "tormentas", "peek the issue", "create the issue", "brew coffee. It is late.", "read"} {
		fmt.Fprintf(&b, "%s: %s\n", query, shown(z, z.Search(query, 3, nil)))
	}
	golden.Compare(t, "ranked.golden", b.String())
}

// testdata/foreign.golden has what words of other languages find in a catalog that has some of
// them itself.
func TestForeignGolden(t *testing.T) {
	docs := []*Document{
		{Server: "files", Name: "delete_file", Description: "Deletes a file or a folder"},
		{Server: "files", Name: "list_files", Description: "Lists what a folder has", ReadOnly: true},
		{Server: "files", Name: "read_contents", Description: "Reads the contents of a file"},
		{Server: "mail", Name: "send_message", Description: "Sends a message with a file"},
		{Server: "mail", Name: "list_messages", Description: "Lists messages, the newest first"},
		{Server: "git", Name: "merge_request", Description: "Merges a request of a repository"},
		{Server: "git", Name: "authorize_user", Description: "Authorization of a user"},
		{Server: "weather", Name: "forecast", Description: "Weather and rain for a city"},
		{Server: "büro", Name: "Datei_ablegen", Description: "Legt eine Datei ab"},
		{Server: "办公", Name: "发送邮件", Description: "发送一封邮件"},
		{Server: "misc", Name: "die", Description: "Rolls a die"},
		{Server: "misc", Name: "get_size", Description: "Says how large it is"},
	}
	l := &Lexicon{
		Stop: []string{"the", "of", "a", "for", "it", "is"}, Faint: []string{"please", "want"}, Generic: []string{"get", "list"},
		Synonyms: [][]string{{"message", "mail"}}, Hints: []Hint{{From: []string{"storm"}, To: []string{"weather"}}}, Abbreviations: []Hint{{From: []string{"mr"}, To: []string{"merge", "request"}}},
		Requests: []string{"send", "lösche", "delete"}, Verbs: Verbs{Read: []string{"read", "list", "get"}, Create: []string{"send"}, Delete: []string{"delete"}},
		Foreign: []Hint{
			{[]string{"lösch", "löschung", "удал", "削除", "删除", "削"}, []string{"delete"}},
			{[]string{"datei", "файл", "ファイル", "文件"}, []string{"file"}},
			{[]string{"ordner", "папк"}, []string{"folder"}},
			{[]string{"inhalt", "содерж"}, []string{"content", "text"}},
			{[]string{"nachricht", "сообщ", "邮件"}, []string{"message"}},
			{[]string{"größe", "размер"}, []string{"size"}},
			{[]string{"zeige", "liste", "покаж"}, []string{"list"}},
			{[]string{"anfrage"}, []string{"mr"}},
			{[]string{"sturm"}, []string{"storm"}},
			{[]string{"behörde"}, []string{"authority"}},
			{[]string{"bitte", "will"}, []string{"please"}},
			{[]string{"die", "der", "das", "и", "を"}, []string{"the"}},
			{[]string{"unfug"}, []string{"nonsense"}},
			{[]string{"ja"}, []string{"weather", "the"}},
			{[]string{"sende", "发送"}, []string{"send"}},
			{[]string{"strich", "-"}, []string{"--"}},
		},
	}
	var b strings.Builder
	b.WriteString("What words of other languages find: by the default ranker, why the first, and what two others lack; and by the lexical one, if that is something else.\n\n")
	x, lexical := NewIndex(docs, &Options{Lexicon: l, Threshold: -1}), NewIndex(docs, &Options{Lexicon: l, Threshold: -1, Ranker: RankerLexical})
	shown := func(x *Index, query string) string {
		var list []string
		for _, m := range x.Search(query, 5, nil) {
			list = append(list, fmt.Sprintf("%s %.3f", x.Document(m.Doc).Name, m.Score))
		}
		return strings.Join(list, ", ")
	}
	for _, query := range []string{
		"lösch", "Lösche", "löschen", "Löschung", "löschungen", "löschbar", "LÖSCHTE!", "lös", "löschigkeiten", "löschenderweise", "datei", "Dateien", "dateiinhalt", "Dateiinhalte", "Dateiordnerinhalt", "dateixinhalt", "dateiabcdefinhalt", "dateiabcdefginhalt", "xdatei", "datei_inhalt", "dateiInhalt", "lösche2datei",
		"Lösche die Datei", "Lösche die Dateien der Ordner", "the datei", "the ordner", "lösche the ordner", "lösche of the ordner", "the lösche of ordner", "zeige die Größe", "Zeige Nachrichten", "Sende eine Nachricht", "sende bitte die Nachricht", "bitte", "will", "ich will löschen", "die", "die die", "der", "unfug", "unfug löschen", "xyzzy behörde", "Behörden", "ja", "ja löschen", "Anfrage", "Anfragen löschen", "Sturm", "stürme", "Sturmwarnung",
		"удали файл", "Удалите файлы и папки", "покажи содержание", "размер", "размеры файлов", "削除", "削", "ファイルを削除", "ファイルを削除して", "このファイル", "文件", "删除文件", "发送邮件", "发送", "邮件", "删除邮件 die", "删除 the", "删除 the of", "删x除", "削除ファイル文件", "ｆｉｌｅ 削除",
		"delete datei", "delete the ordner", "mr löschen", "ordner ordner", "ordner folder", "folder ordner", "Ordner. Folder", "lösche. die", "Lösche den Ordner. Sende die Nachricht!", "Der Ordner ist da. Lösche ihn. Sende eine Nachricht.", "Folder. Lösche den Ordner.", "List the folder and its messages. Dann Ordner löschen.", "Zeige Ordner. Zeige Nachrichten. Lösche alle Nachrichten.", "strich", "- löschen", "löschne", "ordnre", "naricht",
	} {
		fmt.Fprintf(&b, "%s: %s\n", query, shown(x, query))
		if found := x.Search(query, 1, nil); len(found) > 0 {
			b.WriteString("   why:")
			for _, p := range x.Explain(query, found[0].Doc).Parts {
				fmt.Fprintf(&b, " %s %s>%s>%s %.3f;", p.Field, p.Word, p.Query, p.Term, p.Score)
			}
			fmt.Fprintf(&b, " lack %q %q\n", x.Explain(query, 7).Missing, x.Explain(query, 8).Missing)
		}
		if other := shown(lexical, query); other != shown(x, query) {
			fmt.Fprintf(&b, "   lexical: %s\n", other)
		}
	}
	golden.Compare(t, "foreign.golden", b.String())
}

// testdata/messages.golden has what is read of messages beside a search.
func TestMessagesGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("What is read of messages: intents, by a table and by the default one.\n\n")
	table := []IntentWords{{"mail", []string{"email", "send mail", "发邮件"}}, {"code", []string{"pull request", "bug", "C++", "!!"}}, {"mail", []string{"inbox"}}, {"none", nil}, {"", []string{"nameless"}}}
	for _, message := range []string{
		"", "email", "Emails!", "send mail", "send the mail", "send, mail", "mail send", "发邮件", "发 邮件", "请发邮件给她", "a bug in the pull request by email", "bug bug bug", "pull requests", "pull-request", "the inbox has a bug", "C++", "!!", "nameless", "ÉMAIL", "email inbox send mail", strings.Repeat("bug ", 50) + "email",
	} {
		fmt.Fprintf(&b, "%q\n", text.Line(message, 60))
		for _, intents := range [][]Intent{DetectIntents(message, table), DetectIntents(message, DefaultIntents()), DetectIntents(message, nil)} {
			for _, in := range intents {
				fmt.Fprintf(&b, "   %q %.4f %q\n", in.Name, in.Confidence, in.Keywords)
			}
			b.WriteString("   -\n")
		}
	}
	b.WriteString("\nDirectives in answers: at once, and letter by letter.\n\n")
	for _, answer := range []string{
		"", "SEARCH_TOOLS: a", "x SEARCH_TOOLS: a", "SEARCH_TOOLS:a\nSEARCH_TOOLS: b\n", " SEARCH_TOOLS: a ", "search_tools: a", "SEARCH_TOOLS:", "SEARCH_TOOLS: \n", "SEARCH_TOOLS: a\r\nb", "- SEARCH_TOOLS: a", "**SEARCH_TOOLS: a**", "`SEARCH_TOOLS: a`", "> SEARCH_TOOLS: a", "```\nSEARCH_TOOLS: a\n```", "SEARCH_TOOLS: a SEARCH_TOOLS: b", "SEARCH_TOOLS : a", "SEARCH_TOOLS: " + strings.Repeat("l", 3000), strings.Repeat("SEARCH_TOOLS: a\n", 40), "SEARCH_TOOLS: a\nSEARCH_TOOLS: a",
	} {
		var d Directives
		for i := range len(answer) {
			_, _ = d.Write([]byte(answer[i : i+1]))
		}
		once, piecewise := FindDirectives(answer), d.End()
		fmt.Fprintf(&b, "%q: %d %.100q", text.Line(answer, 60), len(once), once)
		if slices.Equal(once, piecewise) {
			b.WriteString(", the same\n")
		} else {
			fmt.Fprintf(&b, ", %d %.100q\n", len(piecewise), piecewise)
		}
	}
	b.WriteString("\nTopics.\n\n")
	for _, names := range [][]string{nil, {"a"}, {"create_issue", "list_issues", "close_issue"}, {"get_weather"}, {"github_create_issue", "github_list_repos"}, {"getUser", "setUser", "listOrders"}, {"x", "y", "z", "read_file", "write_file", "move_file", "list_folder"}, {"查询天气", "查询地图"}, {"v1_a", "v2_b"}, {strings.Repeat("long", 40)}} {
		s := Topic{Server: "github"}
		for _, name := range names {
			s.Add(name)
		}
		fmt.Fprintf(&b, "%.60q: %s\n", names, s.String())
	}
	b.WriteString("\nLexicons as texts.\n\n")
	for _, words := range []string{
		"", "# only a comment", "stop", "[stop]\nthe of\n\n# no\n  a  \n", "[other]\nx", "[stop\nx", "[faint]\nplease\n[generic]\nget\n[requests]\nfind\n[verbs]\nread = get list\ncreate = add\nupdate = set\ndelete = drop\nchange = send\nread = show", "[verbs]\nother = x", "[verbs]\nread get", "[verbs]\nread =",
		"[synonyms]\na b\nc d e\n", "[synonyms]\na", "[abbreviations]\npr = pull request", "[abbreviations]\n= x", "[abbreviations]\npr =", "[hints]\nxlsx csv > spreadsheet table", "[hints]\n> x", "[hints]\nx >", "[hints]\na > b > c", "[hints]\na = b", "[translations]\n天气 气象 = weather", "[translations]\na > b", "[foreign]\ndatei fichier = file", "[foreign]\n= file", "[stop]\nthe\n[stop]\nof",
	} {
		l, err := ParseLexicon(words)
		if err != nil {
			fmt.Fprintf(&b, "%q: error %v\n", words, err)
		} else {
			fmt.Fprintf(&b, "%q: %s\n", words, golden.Text(*l))
		}
	}
	golden.Compare(t, "messages.golden", b.String())
}
