package sandbox

// What a posture can lack, in the words a person reads.
const (
	lackFiles     = "files outside the roots"
	lackMetadata  = "permissions, owners and times of files outside the roots"
	lackProtected = "protected names inside the roots"
	lackHidden    = "forbidden directories inside the roots"
	lackNetwork   = "the network"
	lackSockets   = "local sockets of other programs"
	lackProcesses = "other processes of the user"
	lackKernel    = "rarely used parts of the kernel"
	lackCount     = "the number of processes"
	lackSecond    = "a second line of defence behind the namespaces (Landlock)"
)

// everything is what is open without a sandbox.
func everything() []string {
	return []string{lackFiles, lackMetadata, lackProtected, lackHidden, lackNetwork, lackSockets, lackProcesses, lackKernel}
}
