# Sourced by ci/test and ci/deep: runs steps, counts their tests, tells the sum.
#
# step NAME COMMAND...  runs a command, keeps its output in a file, and counts
#   - the closing lines of cargo's test harness,
#   - lines `ok - NAME` and `not ok - NAME` of scripts,
#   - lines `skipped: REASON`, each a test that passed without testing.
# A step without any of them counts as one test. What was skipped is told again
# before the sum, with the step and the reason.

passed=0 failed=0 skipped=0
skips=
logs=${CI_LOGS:-${CARGO_TARGET_DIR:-$PWD/target}/ci-logs}
mkdir -p "$logs"
export CARGO_TERM_COLOR=never

step() {
	local name=$1 log p f s times reason status=0 begun=$SECONDS
	shift
	log=$logs/${name//[^A-Za-z0-9]/-}.log
	"$@" >"$log" 2>&1 || status=$?
	read -r p f s < <(awk '
		/^test result:/ { for (i = 2; i <= NF; i++) {
			if ($i ~ /^passed/) p += $(i-1)
			if ($i ~ /^failed/) f += $(i-1)
			if ($i ~ /^ignored/) s += $(i-1)
		} }
		/^ok - / { p++ }
		/^not ok - / { f++ }
		/^ *skipped: / { s++; p-- }
		END { print p+0, f+0, s+0 }' "$log")
	[ "$p" -ge 0 ] || p=0
	if [ "$status" = 0 ] && [ $((p + f + s)) = 0 ]; then p=1; fi
	if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	printf '%-44s %4d passed %3d failed %3d skipped  %4d s\n' \
		"$name" "$p" "$f" "$s" $((SECONDS - begun))
	if [ "$f" != 0 ]; then
		echo "--- $log"
		grep -nE '^error|panicked|FAILED|^not ok|^failures:|assert' "$log" | tail -n 40 || true
		echo "--- its end"
		tail -n 25 "$log"
		echo "---"
	fi
	if [ "$s" != 0 ]; then
		while read -r times reason; do
			skips+=$(printf '%4d  %s: %s' "$times" "$name" "$reason")$'\n'
		done < <(skips_of "$log" | sort | uniq -c)
	fi
}

# skips_of LOG: what a step skipped, one reason in a line: its own, or the name of
# a test that cargo's harness was told to ignore.
skips_of() {
	sed -nE 's/^ *skipped: //p; s/^test (.*) \.\.\. ignored(, .*)?$/\1, ignored\2/p' "$1"
}

# packages NAME...: installs Debian packages that are missing.
packages() {
	local missing=() package
	for package in "$@"; do
		dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
			missing+=("$package")
	done
	[ ${#missing[@]} = 0 ] && return 0
	echo "installing ${missing[*]}"
	apt-get update -qq &&
		DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends \
			"${missing[@]}" >/dev/null
}

tell_the_sum() {
	if [ "$skipped" != 0 ]; then
		echo 'skipped:'
		printf '%s' "$skips"
	fi
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}
