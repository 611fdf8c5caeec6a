package search

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:embed intents.txt
var intentsText string

func TestSpecE2IntentsOfMessages(t *testing.T) {
	tests := []struct {
		message string
		want    []string // best first
	}{
		{"Please open a pull request on GitHub and send a message to the team", []string{"version_control", "send_message"}},
		{"Search the web for the latest news about Go", []string{"search_web"}},
		{"Take a screenshot of the website", []string{"browse"}},
		{"What is the weather forecast for Oslo?", []string{"check_weather"}},
		{"SCHEDULED A MEETING; schedule a meeting!", []string{"manage_calendar"}},
		{"run createPullRequest", []string{"version_control"}},
		{"Lies die Datei bericht.txt und schicke eine Nachricht an Anna", []string{"read_files", "send_message"}},
		{"Kannst du einen Termin mit Frau Müller vereinbaren?", []string{"manage_calendar"}},
		{"Führe die Tests aus und zeige die Testabdeckung", []string{"run_tests"}},
		{"Quel temps fait-il à Paris demain ?", []string{"check_weather"}},
		{"envoyer un e-mail à Léa", []string{"send_email"}},
		{"Busca en internet las últimas noticias y envía un correo a Juan", []string{"search_web", "send_email"}},
		{"Despliega la nueva versión en producción", []string{"deploy"}},
		{"Execute os testes e depois faça o deploy", []string{"run_tests", "deploy"}},
		{"Quantos clientes há no banco de dados?", []string{"query_database"}},
		{"帮我查询数据库里的用户表", []string{"query_database"}},
		{"明天上海天气怎么样", []string{"check_weather"}},
		{"明日の会議を予約して、メールを送ってください", []string{"send_email", "manage_calendar"}},
		{"ブラウザでスクリーンショットを撮って", []string{"browse"}},
		{"내일 서울 날씨는 어때?", []string{"check_weather"}},
		{"Gửi tin nhắn cho Lan và đặt lịch họp ngày mai", []string{"send_message", "manage_calendar"}},
		{"phân tích dữ liệu trong bảng tính", []string{"analyze_data"}},
		{"Собери проект и запусти тесты", []string{"run_tests", "run_build"}},
		{"Какая погода завтра в Москве?", []string{"check_weather"}},
	}
	for _, test := range tests {
		var got []string
		for _, i := range DetectIntents(test.message, nil) {
			got = append(got, i.Name)
		}
		assert.Equal(t, test.want, got, test.message)
	}
	for _, message := range []string{
		"", "!?", "Hello, how are you?", "What is the capital of France?", "Write a poem about the sea.", "It is direct, not a product, for instance.",
		"Guten Tag, wie geht es dir?", "Erkläre mir die Relativitätstheorie.", "Bonjour, comment ça va ?", "Explique-moi la relativité.",
		"Hola, ¿cómo estás?", "Explícame la teoría de la relatividad.", "Olá, tudo bem?", "你好，你今天怎么样？", "请解释相对论", "こんにちは、元気ですか？",
		"안녕하세요, 잘 지내세요?", "Xin chào, bạn có khỏe không?", "Giải thích thuyết tương đối cho tôi", "Привет, как дела?", "Объясни теорию относительности", "\xff\xfe",
	} {
		assert.Nil(t, DetectIntents(message, nil), message)
	}
}

// An identifier whose parts are single letters is one word. Its parts are none.
func TestIntentsOfShortIdentifiers(t *testing.T) {
	table := []IntentWords{{"a", []string{"xY"}}, {"b", []string{"run xY now"}}, {"c", []string{"x", "y"}}}
	for message, want := range map[string][]Intent{
		"xY":             {{"a", 0.5, []string{"xY"}}},
		"an XY, or so":   {{"a", 0.5, []string{"xY"}}},
		"run xY now, xY": {{"b", 0.875, []string{"run xY now"}}, {"a", 0.5, []string{"xY"}}},
		"run, x Y now":   nil,
	} {
		assert.Equal(t, want, DetectIntents(message, table), message)
	}
}

func TestSpecE2Confidence(t *testing.T) {
	table := []IntentWords{
		{"mail", []string{"Mail", "mails", "send a letter", "letter", "post"}},
		{"chat", []string{"post", "talk"}},
		{"code", []string{"pull request", "GitHub", "编译代码"}},
		{"weather", []string{"天气", "雨", "!", ""}},
		{"mail", []string{"postman"}},
	}
	half := 1 - math.Exp2(-0.5)
	tests := []struct {
		message string
		want    []Intent
	}{
		{"mail", []Intent{{"mail", 0.5, []string{"Mail"}}}},
		{"MAILS, mail: e-mail", []Intent{{"mail", 0.5, []string{"Mail"}}}}, // the keywords are the same term
		{"postman", []Intent{{"mail", 0.5, []string{"postman"}}}},
		{"post", []Intent{{"mail", half, []string{"post"}}, {"chat", half, []string{"post"}}}},
		{"talk, post", []Intent{{"chat", 1 - math.Exp2(-1.5), []string{"talk", "post"}}, {"mail", half, []string{"post"}}}},
		{"send letter", []Intent{{"mail", 0.75, []string{"send a letter"}}}},
		{"letter: send letters", []Intent{{"mail", 0.875, []string{"letter", "send a letter"}}}},
		{"send letters, letter", []Intent{{"mail", 0.875, []string{"send a letter", "letter"}}}},
		{"send, a. LETTER", []Intent{{"mail", 0.75, []string{"send a letter"}}}},
		{"send this letter", []Intent{{"mail", 0.5, []string{"letter"}}}},
		{"githubPullRequests github", []Intent{{"code", 0.875, []string{"GitHub", "pull request"}}}},
		{"GitHub", []Intent{{"code", 0.5, []string{"GitHub"}}}},
		{"git hub, pull the request", nil},
		{"今天的天气", []Intent{{"weather", 0.5, []string{"天气"}}}},
		{"天 气,天。气", nil},
		{"编译代码！雨", []Intent{{"code", 0.75, []string{"编译代码"}}, {"weather", 0.5, []string{"雨"}}}},
		{"talk about mail", []Intent{{"mail", 0.5, []string{"Mail"}}, {"chat", 0.5, []string{"talk"}}}}, // a tie: as in the table
		{"posting", []Intent{{"mail", half, []string{"post"}}, {"chat", half, []string{"post"}}}},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, DetectIntents(test.message, table), test.message)
	}
	assert.Nil(t, DetectIntents("mail", []IntentWords{}), "an empty table is not the default one")
	many := make([]string, 99)
	for i := range many {
		many[i] = fmt.Sprintf("word%c%c", 'a'+i/26, 'a'+i%26)
	}
	assert.Equal(t, 1.0, DetectIntents(strings.Join(many, " "), []IntentWords{{"x", many}})[0].Confidence)
}

func TestSpecE2LongMessages(t *testing.T) {
	table := []IntentWords{{"x", []string{"word"}}}
	long := strings.Repeat("- ", 32<<10)
	assert.Nil(t, DetectIntents(long+" word", table))
	assert.NotNil(t, DetectIntents(long[:len(long)-5]+" word", table))
	assert.NotNil(t, DetectIntents("word "+strings.Repeat("世", 1<<20), table))
}

// Each keyword of the default table can match, and none matches any message.
func TestSpecE2DefaultIntents(t *testing.T) {
	table := DefaultIntents()
	c := compileIntents(table)
	assert.Len(t, c.intents, len(table), "an intent is there once")
	assert.GreaterOrEqual(t, len(table), 15)
	lexicon := compileDefault()
	for _, entry := range table {
		for _, keyword := range entry.Keywords {
			found := DetectIntents(keyword, nil)
			require.NotEmpty(t, found, "%s: %q", entry.Intent, keyword)
			assert.True(t, slices.ContainsFunc(found, func(i Intent) bool { return i.Name == entry.Intent }), "%s: %q", entry.Intent, keyword)
		}
	}
	for _, p := range c.phrases {
		if len(p.steps) > 1 {
			continue
		}
		for term, n := range c.numbers {
			if m, ok := lexicon.numbers[term]; ok && n == p.steps[0].term {
				assert.Equal(t, content, lexicon.class[m], "%q is a word that any message may have", p.of[0].keyword)
			}
		}
	}
	for line := range strings.Lines(intentsText) {
		if line[0] == '[' || line[0] == '#' || line == "\n" {
			continue
		}
		require.Regexp(t, `^(en|de|fr|es|pt|ru|zh|ja|ko|vi): [^,:]+(, [^,:]+)*\n$`, line)
	}
	for _, section := range strings.Split(intentsText, "\n\n")[1:] {
		languages := 0
		for line := range strings.Lines(section) {
			if line[0] != '[' {
				languages++
			}
		}
		assert.Equal(t, 10, languages, section)
	}
	DefaultIntents()[0].Keywords[0] = "changed"
	assert.Equal(t, table, DefaultIntents())
}

// plainIntents implements the documentation of DetectIntents for words of letters
// without endings.
func plainIntents(message []string, table []IntentWords) (list []Intent) {
	type occurrence struct {
		start, end int
		keyword    string
	}
	var all []occurrence
	owners := make(map[string]map[string]bool)
	for _, entry := range table {
		for _, k := range entry.Keywords {
			if owners[k] == nil {
				owners[k] = make(map[string]bool)
			}
			owners[k][entry.Intent] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(owners)) {
		words := strings.Fields(k)
		for i := 0; i+len(words) <= len(message); i++ {
			if slices.Equal(words, message[i:i+len(words)]) {
				all = append(all, occurrence{i, i + len(words), k})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b occurrence) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	for _, entry := range table {
		n := 0 // in units of 1/60
		i := Intent{Name: entry.Intent}
		for _, o := range all {
			within := slices.ContainsFunc(all, func(p occurrence) bool {
				return p.start <= o.start && o.end <= p.end && p.end-p.start > o.end-o.start
			})
			if !within && owners[o.keyword][entry.Intent] && !slices.Contains(i.Keywords, o.keyword) {
				i.Keywords = append(i.Keywords, o.keyword)
				n += (o.end - o.start) * 60 / len(owners[o.keyword])
			}
		}
		if i.Keywords != nil {
			i.Confidence = 1 - math.Exp2(-float64(n)/60)
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b Intent) int { return cmp.Compare(b.Confidence, a.Confidence) })
	return list
}

// Random tables and messages agree with plainIntents. A foreign word changes
// nothing unless it stands inside a keyword.
func TestSpecE2IntentsByDefinition(t *testing.T) {
	vocabulary := []string{"ba", "ko", "du", "mi", "fo", "pa"}
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		pick := func(n int) (words []string) {
			for range n {
				words = append(words, vocabulary[random.IntN(len(vocabulary))])
			}
			return words
		}
		table := make([]IntentWords, 1+random.IntN(4))
		for i := range table {
			table[i].Intent = fmt.Sprint("intent", i)
			for range random.IntN(5) {
				table[i].Keywords = append(table[i].Keywords, strings.Join(pick(1+random.IntN(3)), " "))
			}
		}
		message := pick(random.IntN(9))
		want := plainIntents(message, table)
		text := strings.Join(message, " ")
		require.Equal(t, want, DetectIntents(text, table), "seed %d: %q in %q", seed, table, text)
		require.Equal(t, want, DetectIntents("Vux "+text+", vux?", table), "seed %d: %q in %q", seed, table, text)
		other := append(slices.Clone(table), IntentWords{"other", []string{"vux", "zo vux"}})
		require.Equal(t, want, DetectIntents(text, other), "seed %d: %q in %q", seed, table, text)
		at := random.IntN(len(message) + 1)
		between := slices.Insert(slices.Clone(message), at, "vux")
		require.Equal(t, plainIntents(between, table), DetectIntents(strings.Join(between, " "), table), "seed %d: %q in %q", seed, table, between)
	}
}

func FuzzDetectIntents(f *testing.F) {
	f.Add("open a pull request in 浏览器 createIssue", "pull request", "天气 getURL")
	f.Add("aB1c é\xff ก็ 天\u0301气", "B1", "\u0301")
	f.Add(strings.Repeat("aB", 40), strings.Repeat("aB", 40), "a")
	f.Add("0", "pullEer \xecquest", "puller")
	f.Fuzz(func(t *testing.T, message, keyword, other string) {
		for _, table := range [][]IntentWords{nil, {{"a", []string{keyword, other}}, {"b", []string{keyword}}, {"a", []string{other + " " + keyword}}}} {
			list := DetectIntents(message, table)
			require.Equal(t, list, DetectIntents(message, table))
			confidence := 1.0
			for _, i := range list {
				if !(i.Confidence > 0 && i.Confidence <= confidence) || len(i.Keywords) == 0 {
					t.Fatalf("%q: %+v", message, list)
				}
				confidence = i.Confidence
			}
		}
		// A message that is a keyword matches it, if the keyword can match at all.
		var a analyzer
		a.add([]byte(keyword))
		if found := DetectIntents(keyword, []IntentWords{{"a", []string{keyword}}}); len(keyword) <= 64<<10 && (len(found) == 1) != (len(a.terms) > 0) {
			t.Fatalf("%q: %d terms, found %v", keyword, len(a.terms), found)
		}
	})
}

func BenchmarkDetectIntents(b *testing.B) {
	message := strings.Repeat("Please read the file report.txt, open a pull request on GitHub and send a message to the team; 帮我查询数据库. ", 10)[:1000]
	b.ReportAllocs()
	for b.Loop() {
		DetectIntents(message, nil)
	}
}
