package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/core/domain"
)

// proof is what trying the sandbox showed, kept for the next process. It
// counts only where everything that could make it wrong is as it was: the
// boot, the kernel and its switches, the name spaces and the user we run in,
// our own image, and the configuration. A command builds its sandbox anew
// each time and is not started where that fails, so an outdated proof can
// claim too much but never let a command out.
type proof struct {
	For     string // digest of what it depends on
	Posture domain.Posture
	Backend backend
}

func (s *Sandbox) proofFile() string {
	if s.cfg.State == "" {
		return ""
	}
	return filepath.Join(s.cfg.State, "posture.json")
}

// recall returns the proof of an earlier process, if it counts.
func (s *Sandbox) recall(dependsOn string) (proof, bool) {
	file := s.proofFile()
	if file == "" || dependsOn == "" {
		return proof{}, false
	}
	raw, err := os.ReadFile(file)
	var p proof
	if err != nil || json.Unmarshal(raw, &p) != nil || p.For != dependsOn {
		return proof{}, false
	}
	return p, true
}

// keep writes a proof down for the next process. That nothing works is kept
// to be told (Known); whoever wants to run a command tries again, for it may be
// mended meanwhile. Losing a proof costs a few process starts.
func (s *Sandbox) keep(p proof) {
	file := s.proofFile()
	if file == "" || p.For == "" || p.Posture.Word == domain.PostureOff {
		return
	}
	raw, err := json.Marshal(p)
	if err != nil || os.MkdirAll(s.cfg.State, 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(s.cfg.State, "posture-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(raw)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
}

// Doubt forgets the kept proof: a sandbox could not be built though it says
// so. The next process tries again.
func (s *Sandbox) Doubt() {
	if file := s.proofFile(); file != "" {
		_ = os.Remove(file)
	}
}
