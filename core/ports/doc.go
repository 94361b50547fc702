// Package ports declares what the core needs from the outside: small
// interfaces, named by what they do, in domain types only. An adapter that
// passes a port's conformance suite (core/ports/porttest) can replace any
// other behind it; the tests' fakes are such adapters.
//
//	port        consumer                suite                adapters
//	Sessions    services/sessions       porttest.Store       memory, sqlite
//	Journal     services/sessions       porttest.Store       memory, sqlite
//	Ledger      services/turns          porttest.Store       memory, sqlite
//	Leases      services/sessions       porttest.Leases      memory, sqlite
//	Model       services/turns          porttest.Model       llm/openai, llm/scripted, llm/offline
//	Models      services/turns          porttest.Models      llm
//	Tool        services/turns          porttest.Tool        exec, fs, people, web, services/turns (update_plan)
//	ToolSource  services/sessions       porttest.Tool        exec, fs, people, web
//	Roots       services/sessions       porttest.Roots       fs
//	Blobs       services/turns          porttest.Blobs       fs
//	Client      services/turns,sessions porttest.Client      jsonrpc/acp1
//	Files       fs                      porttest.Files       jsonrpc/acp1
//	Agents      services/sessions       porttest.Agents      bootstrap
//	Observer    services                porttest.Observer    observe
//	Sandbox     services/turns          porttest.Sandbox     exec
//	Instructions services/turns         porttest.Instructions fs
//
// Every method takes a context unless it only reports a fact. Optional
// abilities are (X, bool) results, not type assertions. Streams are iterators:
// leaving the loop is the clean-up, and an error is the second value.
//
// Read next: core/services/turns/engine.go.
package ports
