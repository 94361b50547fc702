// Package deploy tests what stands in docs/deploy and the Dockerfile: that the
// files say what Berth needs, and that its sandbox is as strong inside of the
// service as outside.
package deploy
