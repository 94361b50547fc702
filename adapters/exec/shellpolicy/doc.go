// Package shellpolicy judges lines of shell before they run.
//
// A line is parsed by a real grammar, in the dialect of the shell that will
// run it, and walked as a whole. A line is a read only by positive proof:
// every node, word, flag, operand and redirection was recognised as one that
// neither writes nor starts anything but the program named. Everything else
// raises the class. Nothing here decides: the analysis is what domain.Decide
// makes its decision on, and the sandbox is what holds the command.
//
// Analyze is called once for a line, from any goroutine; it looks at the file
// system through Paths alone, save for the names that a pattern may match.
package shellpolicy
