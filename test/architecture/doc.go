// Package architecture holds the rules of ARCHITECTURE.md as tests, so that
// go test ./... alone says when a change breaks one: who may import whom, what
// a port owes its users, who may start a goroutine, what the core may not
// know, what may write to standard output, what start-up may not pay for.
//
// Every rule is a function from a parsed tree to violations, with the reason
// it exists. mutants_test.go breaks each of them on a small tree in memory; a
// rule that nobody has seen fail is decoration. Exceptions stand in
// exceptions_test.go, each with its reason, and one that is not needed any
// more is a failure too.
//
// If a rule makes the code worse, change the rule and ARCHITECTURE.md in the
// same commit and say why.
package architecture
