// Package console is the web page of a gateway: static files that hold no
// data. All that the page shows comes over /acp, as it does to any client, and
// needs a token.
//
// The page is plain HTML, CSS and ES modules in assets; there is no build step
// and nothing is loaded from elsewhere. What models, tools and people write is
// text to it: modules that make nodes of the page never hand a string to a
// parser of HTML, and the page's policy has browsers refuse it.
//
// Modules without nodes hold the logic and run anywhere: state.js what a
// session shows, opened.js one that is open, wire.js the connection, markdown.js,
// diff.js, text.js, files.js. Those with nodes draw: view.js and items.js the
// story, call.js a call, head.js what stands around it, dialogs.js questions,
// sidebar.js the list; main.js puts them together. test/console tests both kinds.
package console
