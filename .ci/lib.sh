# shellcheck shell=bash
# What .ci/run and .ci/full share: how a step runs and is reported, and the
# steps themselves. It is sourced, and leaves the shell in the repository.
set -u
begun=$EPOCHSECONDS
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
set -a # steps run in shells of their own
root=$PWD
tmp=$(mktemp -d)
# Where there are tools of published servers, and labelled queries.
CATALOGS=${CATALOGS:-$root/../shared/catalogs}
CORPORA=${CORPORA:-$root/../shared/eval}
names=() limits=() pids=() reported=0 passed=0 failed=0
from= # the step to begin with, if not the first

stop() {
	local running
	running=$(jobs -p)
	# shellcheck disable=SC2086
	[ -z "$running" ] || kill $running 2>/dev/null
	wait
	rm -rf "$tmp"
}
trap stop EXIT
trap 'exit 130' INT TERM

# start NAME SECONDS COMMAND…: begins a check, which fails after so many
# seconds at the latest. It does nothing before the step to begin with.
start() {
	[ -z "$from" ] || [ "$from" = "$1" ] || return 0
	from=
	local n=${#names[@]} limit=$2
	names+=("$1")
	limits+=("$limit")
	shift 2
	(
		begun=$EPOCHSECONDS status=0
		timeout -k 20 "$limit" bash -uc '"$@"' step "$@" >"$tmp/$n.log" 2>&1 &
		trap 'kill $!' TERM
		wait $! || status=$?
		echo "$status $((EPOCHSECONDS - begun))" >"$tmp/$n.end"
	) &
	pids+=($!)
}

# finish waits for all that was started and reports it, in that order. The
# output of a check is shown if it fails, but for lines "NOTE: …" and tests that
# were skipped, which always are. Of a check that runs tests with -v, each test
# counts.
finish() {
	local n log status took tests broken
	for ((n = reported; n < ${#names[@]}; n++)); do
		wait "${pids[n]}"
		log=$tmp/$n.log
		read -r status took <"$tmp/$n.end"
		tests=$(grep -cE '^ *--- PASS: ' "$log")
		broken=$(grep -cE '^ *--- FAIL: ' "$log")
		passed=$((passed + tests)) failed=$((failed + broken))
		if [ "$status" = 0 ]; then
			passed=$((passed + 1))
			echo "ok    ${names[n]} ($took s, $tests tests)"
		else
			failed=$((failed + 1))
			[ "$took" -lt "${limits[n]}" ] || echo "more than ${limits[n]} s" >>"$log"
			echo "FAIL  ${names[n]} ($took s, $tests tests)"
			broken "$log"
		fi
		skipped "$log"
		sed -n 's/^NOTE: /      /p' "$log"
	done
	reported=$n
}

step() { start "$@" && finish; }

# broken LOG: what the tests that failed said, if any did, which had not ended, and the end.
broken() {
	awk 'NR == FNR { if ($1 == "---" && $2 == "FAIL:") bad[$3] = 1; next }
		$1 == "===" { test = $3; next }
		/^ *--- FAIL: / || test in bad && !/^ *---/' "$1" "$1" | head -n 200
	awk '$1 == "===" && $2 == "RUN" { open[$3] = 1 }
		$1 == "---" { delete open[$3] }
		END { for (test in open) print "had not ended: " test }' "$1" | sort
	echo "…"
	grep -vE '^ *(--- (PASS|SKIP)|=== )|^NOTE: |^ok  |^PASS' "$1" | tail -n 60
}

# skipped LOG: the tests that were skipped, each with the reason it gave last.
skipped() {
	awk '$1 == "===" { test = $3 }
		/^ +[A-Za-z0-9_]+\.go:[0-9]+: / { reason = $0; sub(/^ +/, "", reason); why[test] = reason }
		$1 == "---" && $2 == "SKIP:" { print "SKIP  " $3 ": " why[$3] }' "$1"
}

# total reports all and ends.
total() {
	finish
	[ -z "$from" ] || { echo "there is no step $from" && exit 2; }
	echo "$((EPOCHSECONDS - begun)) s in all"
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
	exit
}

# Of each module.

modules() { find . -name go.mod -not -path '*/.cache/*' -exec dirname {} \; | sort; }

# each COMMAND…: in every module.
each() {
	local module
	for module in $(modules); do
		(cd "$module" && "$@") || return 1
	done
}

formatted() { test -z "$(gofmt -l . | tee /dev/stderr)"; }

tidy() { each go mod tidy -diff; }

# other_systems: the library and its examples compile where we do not test, and
# searches work where an int has 32 bits. What is compiled for vet only is not optimized.
# A kernel may run no 32-bit programs: then searches only compile.
other_systems() {
	GOOS=windows go vet -gcflags='-N -l' ./... && GOOS=darwin go vet -gcflags='-N -l' ./... &&
		GOARCH=386 go test -c -o "$tmp/search386.test" ./search && cd search || return 1
	"$tmp/search386.test" -test.list '^$' || {
		[ $? = 126 ] && echo "NOTE: NOT RUN: searches on 386, since this system runs no 32-bit programs"
		return
	}
	"$tmp/search386.test"
}

# staticcheck takes a third less with more memory, 1.3 GB. Its low priority leaves the
# cores to the tests beside it.
staticcheck() {
	GOBIN=$tmp/bin go install honnef.co/go/tools/cmd/staticcheck@v0.6.1 && GOGC=400 each nice -n 19 "$tmp/bin/staticcheck" ./...
}

# vulnerabilities: known ones that are called, in any module; findings fail.
# Where the database can't be reached, nothing is checked.
vulnerabilities() {
	local db=${GOVULNDB:-https://vuln.go.dev}
	command -v curl || return 1
	if ! curl -fsS -m 20 -o /dev/null "$db/index/db.json"; then
		echo "NOTE: NOT CHECKED for vulnerabilities: $db can't be reached"
		return
	fi
	each go run golang.org/x/vuln/cmd/govulncheck@v1.8.0 -db "$db" ./...
}

# surface: what other modules can use is a file; a change of it is a decision.
# .ci/surface >api.txt writes it.
surface() { .ci/surface >"$tmp/api.txt" && diff -u api.txt "$tmp/api.txt"; }

# walls: what lies below the root does not know it, and the root does not know
# its debug pages, nor what reads files.
walls() {
	local deps
	deps=$(go list -f '{{$p := .ImportPath}}{{range .Deps}}{{$p}} {{.}}{{"\n"}}{{end}}' ./...) || return 1
	awk -v root="$(go list -m)" '
		$2 == root && ($1 ~ "^" root "/internal/" || $1 ~ "^" root "/(ask|config|hints|provider|scan|search|snapshot|store|vector)(/|$)") ||
		$1 == root && ($2 ~ "^" root "/(debug|files)(/|$)") { print $1 " needs " $2; bad = 1 }
		END { exit bad }' <<<"$deps" && go run ./internal/layers
}

# size: how much larger a host is with the library. It fails only if it can't be built.
size() {
	local said status=0
	said=$(.ci/size) || status=$?
	sed 's/^/NOTE: /' <<<"$said"
	return $status
}

# concurrent: the folders of the packages that start goroutines, have locks or run tests in
# parallel. The race detector finds nothing in the others.
concurrent() {
	local folder
	go list -f '{{.Dir}}' ./... | while read -r folder; do
		! grep -qE '^\s+go [a-z(]|\.Go\(|t\.Parallel\(|"sync(/atomic)?"|synctest' "$folder"/*.go || echo "$folder"
	done
}

# race FLAG…: their tests with the race detector. The visitor runs all tests without.
race() {
	# shellcheck disable=SC2046
	go test -race -vet=off "$@" $(concurrent)
}

# visitor FLAG…: what the pages say, done by somebody who has only Go and git.
visitor() { go run ./internal/visitor "$@"; }

# strangers: a stranger's module for each runtime, with replace lines and the
# versions that the adapter is tested with, compiles the program of its README.
strangers() {
	local adapter dir
	for adapter in adapters/*/go.mod; do
		adapter=${adapter%/*}
		dir=$tmp/strangers/$(basename "$adapter")
		mkdir -p "$dir" && sed -n '/^```go$/,/^```$/{/^```/!p}' "$adapter/README.md" >"$dir/main.go" &&
			sed "s|^module .*|module example.com/stranger|; s|=> \\.\\./\\.\\./*|=> $root|" "$adapter/go.mod" >"$dir/go.mod" && cp "$adapter/go.sum" "$dir" &&
			(cd "$dir" && go mod edit -replace "github.com/mcphybrid/mcphybrid/$adapter=$root/$adapter" && go mod tidy && go vet .) || return 1
	done
}

# compatible: nothing breaks what other modules use of the last release, unless the
# changelog says so; and what breaks something is found, in a repository made for it.
compatible() {
	.ci/compat && mkdir -p "$tmp/made" && cd "$tmp/made" || return 1
	local commit=(git -c user.name=made -c user.email=made@example.com commit -qm made)
	export GOFLAGS=-mod=mod
	git init -q . && printf 'module example.com/made\n\ngo 1.25\n' >go.mod && printf 'package made\n\nfunc F(int) {}\n' >made.go &&
		mkdir sub && printf 'module example.com/made/sub\n\ngo 1.25\n' >sub/go.mod && printf 'package sub\n' >sub/sub.go &&
		printf '## Unreleased\n' >CHANGELOG.md && git add . && "${commit[@]}" && git tag v0.1.0 &&
		echo 'func G() {}' >>made.go && "$root/.ci/compat" v0.1.1 || return 1
	echo 'func' >>made.go && ! "$root/.ci/compat" v0.1.1 && sed -i '$d' made.go || return 1 # it can't be compared
	git rm -rq sub && ! "$root/.ci/compat" v0.1.1 && git reset -q -- sub && git checkout -q -- sub || return 1
	sed -i 's/F(int)/F(string)/' made.go && ! "$root/.ci/compat" v0.1.1 && ! "$root/.ci/compat" v0.2.0 || return 1
	printf '### Breaking\n' >>CHANGELOG.md && ! "$root/.ci/compat" v0.1.1 && "$root/.ci/compat" v0.2.0
}

# evaluation: recall@5 of the default ranker, on our own corpus and, where they
# are, on the development corpora in $CORPORA; the mean over these must not
# fall by more than a point below what was recorded.
evaluation() {
	local corpus value values=()
	go build -o "$tmp/mcphybrid" ./cmd/mcphybrid || return 1
	recall() {
		"$tmp/mcphybrid" eval -tools "$1/tools.jsonl" -queries "$1/queries.jsonl" -json | grep -oE '"recall@5":[0-9.e-]+' | cut -d: -f2
	}
	# at_least NAME LEAST VALUE…: the mean of the values.
	at_least() {
		local name=$1 least=$2
		shift 2
		awk -v name="$name" -v least="$least" 'BEGIN { for (i = 1; i < ARGC; i++) sum += ARGV[i]; mean = sum / (ARGC - 1)
			printf "NOTE: %s: recall@5 %.4f, at least %s\n", name, mean, least; exit !(mean >= least) }' "$@"
	}
	at_least "our own" 0.835 "$(recall testdata/corpus)" || return 1
	for corpus in "$CORPORA"/*/; do
		[ -f "$corpus/queries.jsonl" ] || continue
		value=$(recall "$corpus") || return 1
		echo "$corpus $value"
		values+=("$value")
	done
	if [ ${#values[@]} = 0 ]; then
		echo "NOTE: no corpora in $CORPORA"
		return
	fi
	at_least "mean" 0.798 "${values[@]}" # 0.808 was recorded on 2026-11-22
}

# meaning: recall@5 of searches by words and meaning, with the defaults, against
# that by words alone, over the English corpora in $CORPORA: with a real model,
# and with random vectors, which must cost next to nothing. cmd/mcphybrid/internal/eval/model
# pins the model. Embedding all texts takes eight minutes.
meaning() {
	compgen -G "$CORPORA/*/queries.jsonl" >/dev/null || { echo "NOTE: no corpora in $CORPORA"; return; }
	go build -o "$tmp/mcphybrid" ./cmd/mcphybrid && cp -r cmd/mcphybrid/internal/eval/model "$tmp" &&
		npm ci --prefix "$tmp/model" --ignore-scripts --no-audit --no-fund || return 1
	node "$tmp/model/serve.mjs" 0 >"$tmp/model/url" &
	trap "kill $!" EXIT
	until [ -s "$tmp/model/url" ]; do
		kill -0 $! || return 1
		sleep 0.2
	done
	english() { "$tmp/mcphybrid" eval -corpora "$CORPORA" -json "$@" | grep -oE '"english":\{[^}]*' | grep -oE '"recall@5":[0-9.e-]+' | cut -d: -f2; }
	# gains NAME LEAST FLAG…: how many points more there are than by words.
	gains() {
		local name=$1 least=$2 value
		shift 2
		value=$(english -ranker hybrid "$@") && [ -n "$value" ] || return 1
		awk -v name="$name" -v least="$least" -v words="$words" -v value="$value" 'BEGIN { gain = 100 * (value - words)
			printf "NOTE: %s: recall@5 %+.2f points on words alone, at least %s\n", name, gain, least; exit !(gain >= least) }'
	}
	local words status=0
	words=$(english) && [ -n "$words" ] || return 1
	gains "64 random dimensions" -0.3 -random 64 || status=1
	gains "512 random dimensions" -0.3 -random 512 || status=1
	gains "a real model" 0.6 -openai "$(cat "$tmp/model/url")" -model use || status=1 # 0.94 on 2026-11-22
	return $status
}

# mutants N LEAST: whether tests see so many small changes of the code, chosen by how many
# commits there are. Each that survives is named, and fewer than LEAST percent that are caught
# fail; some survive because they change nothing. The packages are those of the product.
mutants() {
	local status=0
	set -o pipefail
	go run ./internal/mutate -jobs 2 -seed "$(git rev-list --count HEAD)" -n "$1" -least "$2" \
		$(go list ./... | grep -vE '/(examples|adapters|storetest|internal/(mutate|layers|visitor|mcptest|modeltest|demo)|(command|terminal)test)(/|$)') |
		tee "$tmp/mutants" || status=1
	awk '/^[a-z]/ { shown = /^(survived|unreached|seed)/ } shown { print "NOTE: " $0 }' "$tmp/mutants"
	return $status
}

# Long tests. They run two at a time, as two cores can.

# where FUNCTION: the folder of the root module's package that has this test.
where() { grep -lE "^func $1\(" $(go list -f '{{range .TestGoFiles}}{{$.Dir}}/{{.}} {{end}}' ./...) | head -n 1 | xargs dirname; }

# raced TEST: enters the folder of the package that has this test, and sets program to
# its tests with the race detector, which are built once.
raced() {
	local folder
	folder=$(where "$1") && [ -n "$folder" ] && cd "$folder" || return 1
	program=$tmp/${folder//\//_}.test
	[ -x "$program" ] || go test -race -vet=off -ldflags=-w -c -o "$program" .
}

# stress TIME CALLS: everything at once, and sessions that must not mix.
stress() {
	local program
	raced TestStress && "$program" -test.v -test.run '^TestStress$' -test.timeout 10m -stress "$1" &&
		cd "$root" && raced TestSpecF3SessionsSeeOnlyTheirOwn && "$program" -test.v -test.run '^TestSpecF3SessionsSeeOnlyTheirOwn$' -test.timeout 10m -calls "$2"
}

# walk SEEDS TIME: so many walks among servers that misbehave, half of them
# beside the other half. A walk that fails names its seed.
walk() {
	local seeds=$1 time=$2 program half pids=() status=0
	raced TestWalk || return 1
	for half in 0 1; do
		"$program" -test.v -test.run '^TestWalk$' -test.timeout 60m \
			-walk "$time" -seed $((1 + half * seeds / 2)) -seeds $((seeds / 2)) >"$tmp/walk$half" 2>&1 &
		pids+=($!)
	done
	for half in "${pids[@]}"; do wait "$half" || status=1; done
	cat "$tmp/walk0" "$tmp/walk1"
	return $status
}

# fuzz_targets FOLDER…: the packages with fuzz targets in these modules, each as
# a line "folder target…".
fuzz_targets() {
	local module folder targets
	for module in "$@"; do
		for folder in $(cd "$module" && go list -f '{{.Dir}}' ./...); do
			targets=$(cat "$folder"/*_test.go 2>/dev/null | grep -oE '^func Fuzz[A-Za-z0-9_]+' | cut -d' ' -f2)
			# shellcheck disable=SC2086
			[ -z "$targets" ] || echo "$folder" $targets
		done
	done
}

# changed: copies the lines of fuzz_targets whose packages differ from the parent
# of the main branch's last commit.
changed() {
	local base folder targets
	base=$(git rev-parse -q --verify origin/HEAD~) || return 0
	while read -r folder targets; do
		git diff --quiet "$base" -- "$folder/*.go" ":(exclude)$folder/*/*.go" || echo "$folder" "$targets"
	done
}

# fuzz TIME FOLDER…: each target of these modules, one worker each, two at a
# time. With the time "sample", 4 s for those of changed packages or, if there
# are none or that is not known, 1 s for all.
fuzz() {
	local time=$1 folder targets target status=0 n=0
	shift
	set -o pipefail # a package is built while others are fuzzed
	fuzz_targets "$@" >"$tmp/targets"
	if [ "$time" = sample ]; then
		changed <"$tmp/targets" >"$tmp/changed"
		time=1s
		if [ -s "$tmp/changed" ]; then
			time=4s
			mv "$tmp/changed" "$tmp/targets"
		fi
	fi
	while read -r folder targets; do
		n=$((n + 1))
		# Instrumented once for all targets of the package.
		(cd "$folder" && go test -c -ldflags=-w -fuzz . -o "$tmp/fuzz$n.test" .) || exit 1
		for target in $targets; do
			printf '%s\0' "$folder" "$tmp/fuzz$n.test" "$target" "$time"
		done
	done <"$tmp/targets" | xargs -0 -r -n 4 -P 2 bash -uc 'fuzz_one "$@"' fuzz || status=1
	echo "NOTE: $(cut -d' ' -f2- "$tmp/targets" | wc -w) targets in $(wc -l <"$tmp/targets") packages, $time each"
	return $status
}

# fuzz_one FOLDER PROGRAM TARGET TIME
fuzz_one() {
	local log=$tmp/fuzz.$$
	cd "$1" || return 1
	export WEAVIATE_ADDR=127.0.0.1:1 # lest a server is built, which no target needs
	# The fuzzer sometimes fails with no more than this when the time is up; an
	# input that fails is always written and named.
	timeout 120 "$2" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime "$4" -test.fuzzminimizetime 10x -test.parallel 1 \
		-test.fuzzcachedir "$(go env GOCACHE)/fuzz/$(go list .)" >"$log" 2>&1 ||
		{ grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; } ||
		{ echo "$3"; cat "$log"; return 1; }
	echo "$3: $(grep execs "$log" | tail -n 1)"
}

# Other modules.

# test_in FOLDER FLAG…: a module's tests.
test_in() { cd "$1" && shift && go test -v "$@" ./...; }

# adapters FLAG…: each over the real model client of its runtime.
adapters() {
	local module status=0
	for module in adapters/*/go.mod; do
		(test_in "${module%/*}" "$@") || status=1
	done
	return $status
}

# light: what the nested modules test without any service. The step vet has vetted them.
light() {
	local module status=0
	for module in codemode tiktoken keyring examples/otel examples/agent examples/replicas stores/natsstore stores/qdrantstore; do
		(test_in "$module" -vet=off -short) || status=1
	done
	adapters -vet=off || status=1
	# An address keeps it from building a server; these tests use none.
	(cd stores/weaviatestore && WEAVIATE_ADDR=127.0.0.1:1 go test -v -vet=off -run '^(TestTenantNames|Fuzz.*)$' .) || status=1
	return $status
}

# real: published servers of npm, over stdio and HTTP, and the official conformance suite. The
# step vet has vetted the tests.
real() {
	cd integration && MCPHYBRID_INTEGRATION_SERVERS=npm go test -v -vet=off -run '^(TestEnvironmentStaysHere|TestCallTimeout|TestEverythingAsks|TestCodeModeTokens|TestSpecH4ConformanceOfClient|TestSpecH4ConformanceOfGateway|TestSpecH4ConformanceOfGatewayBeforeMCPGo|TestSpecH7ConformanceOfExtensions)$' .
}

# install_keyring: GNOME Keyring, which runs without a display.
install_keyring() {
	command -v gnome-keyring-daemon && command -v dbus-run-session ||
		{ apt-get update -q && apt-get install -qy --no-install-recommends gnome-keyring dbus; }
}

# install_proxies: those that the gateway's tests put in front of it.
install_proxies() {
	command -v nginx && command -v caddy ||
		{ apt-get update -q && apt-get install -qy --no-install-recommends nginx-light caddy; }
}

# install_browser: Chromium, which opens the pages in the module integration.
install_browser() {
	command -v chromium || command -v google-chrome ||
		{ apt-get update -q && apt-get install -qy --no-install-recommends chromium fonts-dejavu-core; }
}

set +a
