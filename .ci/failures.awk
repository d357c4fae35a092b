# Prints what failed in a log of .ci/steps: the step, and of each failing test, panic and race the first and the last
# lines; if there is none, the last lines of the step.

function add(line) { if (lines < 300) found[lines++] = line; else more++ }

# What was printed under a name, without the middle of what is long: what a test found stands near the end.
function print_block(name,    i, n) {
	n = length_of[name]
	for (i = 0; i < n; i++) {
		if (n > 40 && i == 8) { add("    ..."); i = n - 30 }
		add(block[name, i])
	}
	length_of[name] = 0
}

# With -v, what a test prints comes before its verdict, under its name; otherwise it follows, until something else does.
function begin(name) { print_block("what follows"); current = name }

/^== .*\(after / { step = $0; lines = more = count = 0; current = ""; delete length_of; next }

{ last[count++ % 30] = $0 }

# The logs of servers would push out what the test itself says.
/^ *(time=[^ ]* level=|\{"(level|time|ts)":)/ { next }

/^=== / { begin($3); next }
/^ *--- FAIL: / { begin("what follows"); add($0); print_block($3); next }
/^ *--- / { begin(""); length_of[$3] = 0; next }
/^(panic: |fatal error: |WARNING: DATA RACE|# )/ { begin("what follows"); add($0); next }
/^FAIL[ \t]/ { begin(""); add($0); next }
/^(ok|FAIL|PASS)/ { begin(""); next }

# A message that goes on for many lines would push out the others.
{ continued = /^        / && !/^ +[^ ]+\.go:[0-9]+: / ? continued + 1 : 0 }
current != "" && NF && continued <= 8 { block[current, length_of[current]++] = continued < 8 ? $0 : "        ..." }

END {
	begin("")
	print "FAILED " step
	if (lines == 0)
		for (i = count > 30 ? count - 30 : 0; i < count; i++) print last[i % 30]
	for (i = 0; i < lines; i++) print found[i]
	if (more) print "... and " more " more lines"
}
