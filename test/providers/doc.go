// Package providers asks every provider type the same things, through the
// whole program and over its wire, and writes down what a client saw: the
// outcome table of docs/providers.md.
package providers
