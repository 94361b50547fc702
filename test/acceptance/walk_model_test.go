package acceptance

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// walkFiles are the files of a walk's directory.
var walkFiles = []string{"a.txt", "b.txt", "c/d.txt"}

// randomModel writes a model script of random steps. Every session plays them
// from the start.
func randomModel(rng *rand.Rand) string {
	var b strings.Builder
	for i := range 4 + rng.IntN(12) {
		if i > 0 {
			b.WriteString("--- next\n")
		}
		randomStep(rng, &b, i)
	}
	b.WriteString("--- next always\ntext \"Nothing more.\"\n")
	return b.String()
}

func randomStep(rng *rand.Rand, b *strings.Builder, n int) {
	if rng.IntN(4) == 0 {
		fmt.Fprintf(b, "delay %s\n", shortTime(rng))
	}
	if rng.IntN(12) == 0 {
		fmt.Fprintf(b, "retrying 1 %s \"slow down\"\n", shortTime(rng))
	}
	calls := 0
	for i := range rng.IntN(5) {
		switch rng.IntN(10) {
		case 0, 1, 2:
			fmt.Fprintf(b, "text \"s%d.%d é\"\n", n, i)
		case 3:
			fmt.Fprintf(b, "thought \"t%d.%d\"\n", n, i)
		case 4:
			fmt.Fprintf(b, "chunks %d \"%d \" every %s\n", 1+rng.IntN(20), i, shortTime(rng))
		case 5:
			fmt.Fprintf(b, "chunks %d \"%d \"\n", 1+rng.IntN(300), i)
		case 6:
			fmt.Fprintf(b, "delay %s\n", shortTime(rng))
		default:
			b.WriteString("call " + randomCall(rng) + "\n")
			calls++
		}
	}
	if rng.IntN(15) == 0 {
		fmt.Fprintf(b, "stall %s\n", time.Duration(rng.IntN(600))*time.Millisecond)
	}
	if rng.IntN(3) == 0 {
		fmt.Fprintf(b, "usage input=%d output=%d\n", rng.IntN(1000), rng.IntN(100))
	}
	switch end := rng.IntN(24); {
	case end == 0:
		b.WriteString("length\n")
	case end == 1:
		b.WriteString("refuse \"I will not.\"\n")
	case end == 2:
		b.WriteString("error " + pick(rng, "rate_limited", "unavailable", "internal", "context_too_long", "auth_required") + " \"it broke\"\n")
	case end == 3:
		b.WriteString("cut\n")
	case end == 4:
		b.WriteString("hang\n")
	case end < 14 && calls == 0:
		b.WriteString("call " + randomCall(rng) + "\n")
	}
}

func shortTime(rng *rand.Rand) string {
	return pick(rng, time.Duration(0), time.Millisecond, 7*time.Millisecond, 40*time.Millisecond, 300*time.Millisecond, 2*time.Second).String()
}

// randomCall is a call of one of the tools, mostly one that can succeed.
func randomCall(rng *rand.Rand) string {
	file := pick(rng, walkFiles...)
	switch rng.IntN(12) {
	case 0, 1, 2:
		return `read_file {"path":"` + file + `"}`
	case 3:
		return `list_directory {}`
	case 4, 5:
		return fmt.Sprintf(`write_file {"path":%q,"content":"one\ntwo\n%d\n"}`, pick(rng, file, "new"+strconv.Itoa(rng.IntN(5))+".txt"), rng.IntN(100))
	case 6, 7, 8:
		return fmt.Sprintf(`edit_file {"path":%q,"edits":[{"old_text":%q,"new_text":%q}]}`, file, pick(rng, "one", "two", "three", "1"), pick(rng, "one", "two", "three", "1"))
	case 9:
		return fmt.Sprintf(`update_plan {"entries":[{"content":"step %d","status":%q}]}`, rng.IntN(9), pick(rng, "pending", "in_progress", "completed"))
	case 10:
		return pick(rng, `no_such_tool {"a":1}`, `read_file {"path":"../outside"}`, `read_file {"path":"/etc/passwd"}`, `write_file {"path":7}`)
	}
	return `read_file {"path":"missing.txt"}`
}
