// Package people is the tools by which an agent turns to a person: ask_user
// puts a question with choices, escalate_to_human calls for someone and may
// wait.
//
// A question goes out as a permission request for the call that asks it, which
// every client can show: each choice is an option that allows, and one more
// declines. The call itself needs no permission, so nobody is asked twice.
// What was chosen is told to the model word for word, what was not answered is
// told as that, and a cancel ends the turn as it does for a permission.
//
// Read next: question.go.
package people
