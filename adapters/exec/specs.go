package exec

import "github.com/berth-dev/berth/core/domain"

// specs are what the model is told about the tools.
type specs struct{ shell, output, kill domain.ToolSpec }

const (
	shellArgs  = "command (string), cwd (string), timeout_secs (number), background (boolean), network (boolean), max_output_bytes (number), description (string)"
	outputArgs = "job (string), wait_secs (number), since (number)"
	killArgs   = "job (string)"
)

func newSpecs(bash bool) specs {
	shell := "POSIX sh"
	if bash {
		shell = "bash"
	}
	return specs{
		shell: domain.ToolSpec{
			Name: "shell", Kind: domain.KindExecute,
			Description: "Runs a command line with " + shell + ", in a fresh shell each time: directories and variables do not carry over. " +
				"The result begins with the exit code in square brackets; both output streams follow as they came. " +
				"Of long output the beginning and the end are shown, and the line between them names the file that holds all of it. " +
				"There is no terminal and nothing to read from standard input, so programs that ask fail: give their flags. " +
				"The call ends with the command; what it leaves running in the background is ended then. " +
				"For servers and whatever else shall stay, set background: the call returns at once, and shell_output and shell_kill take the job it names. " +
				"Use the file tools to read, find and change files.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"command":{"type":"string","description":"The command line"},` +
				`"cwd":{"type":"string","description":"Directory to run in: absolute, or relative to the working directory, which is the default"},` +
				`"timeout_secs":{"type":"integer","minimum":1,"maximum":3600,"description":"Seconds until it is ended. Default 120, in the background 3600"},` +
				`"background":{"type":"boolean","description":"Return at once and let it go on. It ends with the session. Default false"},` +
				`"network":{"type":"boolean","description":"It needs the network. Default false: there may be none then"},` +
				`"max_output_bytes":{"type":"integer","minimum":1024,"description":"How much output to return. Default 65536"},` +
				`"description":{"type":"string","description":"What it is for, in a few words, for the user"}},` +
				`"required":["command"],"additionalProperties":false}`),
		},
		output: domain.ToolSpec{
			Name: "shell_output", Kind: domain.KindExecute, ReadOnly: true,
			Description: "Returns how a background job of shell stands and what it has written, or lists all jobs when none is named. " +
				"The first line, in square brackets, says whether it runs or how it ended, and which value of since returns only what comes later.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"job":{"type":"string","description":"The job, as shell named it. Without it all jobs are listed"},` +
				`"wait_secs":{"type":"integer","minimum":0,"maximum":300,"description":"Wait so long for the job to end or, with since, to write more. Default 0"},` +
				`"since":{"type":"integer","minimum":0,"description":"Return only output from this offset on"}},` +
				`"additionalProperties":false}`),
		},
		kill: domain.ToolSpec{
			Name: "shell_kill", Kind: domain.KindExecute,
			Description: "Ends a background job of shell with everything it started: it is asked to end, and killed when it has not after two seconds. " +
				"Returns the end of its output.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"job":{"type":"string","description":"The job, as shell named it"}},` +
				`"required":["job"],"additionalProperties":false}`),
		},
	}
}
