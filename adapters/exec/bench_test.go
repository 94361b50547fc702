//go:build unix

package exec

import (
	"bytes"
	"context"
	"os/exec"
	"testing"

	"github.com/berth-dev/berth/adapters/exec/sandbox"
	"github.com/berth-dev/berth/core/domain"
)

// BenchmarkSpawn is a whole call of shell that does nothing, beside bash
// alone.
func BenchmarkSpawn(b *testing.B) {
	b.Run("bash alone", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/bash", "--noprofile", "--norc", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, set := range map[string]func(r *rig){
		"without a helper": func(r *rig) { r.conf.Confiner = Plain{} },
		"with a helper":    func(r *rig) { r.conf.Confiner = Plain{Helper: SelfHelper()} },
		"namespaces":       func(r *rig) { r.boxed(sandbox.Namespaces) },
		"landlock":         func(r *rig) { r.boxed(sandbox.Landlock) },
	} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b)
			set(r)
			r.open()
			for b.Loop() {
				if res := r.shell("true"); res.Failed {
					b.Fatal(res.Text)
				}
			}
		})
	}
}

// BenchmarkOutput is what it costs to take output.
func BenchmarkOutput(b *testing.B) {
	for name, unit := range map[string]string{
		"lines": "y\n", "long lines": string(bytes.Repeat([]byte("a line of some length "), 20)) + "\n", "zeros": "\x00",
		"colours": "\x1b[31mred\x1b[0m and not\n", "letters": "漢字 ünï\n", "progress": "10%\r", "garbage": "\xff\x01\xfe",
	} {
		b.Run(name, func(b *testing.B) {
			piece := bytes.Repeat([]byte(unit), 64<<10/len(unit))
			o := newOutput(defaultText, nil, "x")
			b.SetBytes(int64(len(piece)))
			for b.Loop() {
				o.write(piece)
			}
		})
	}
}

// BenchmarkThroughput reads what a command writes as fast as it can.
func BenchmarkThroughput(b *testing.B) {
	r := newRig(b).open()
	p := r.prepare("shell", args{"command": "yes | head -c 256M"})
	_ = p.Close()
	b.SetBytes(256 << 20)
	for b.Loop() {
		res := r.runCtx(context.Background(), "shell", args{"command": "yes | head -c 256M"}, func(domain.ToolProgress) {})
		if r.raw(res).Bytes != 256<<20 {
			b.Fatal(res.Text)
		}
	}
}
