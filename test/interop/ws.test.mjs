// The same day in an editor, over WebSocket,
// by the official client's own transport.
process.env.BERTH_TRANSPORT = "ws";
await import("./sdk.test.mjs");
