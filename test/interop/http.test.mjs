// The same day in an editor, over Streamable HTTP: server-sent events and POST,
// by the official client's own transport.
process.env.BERTH_TRANSPORT = "http";
await import("./sdk.test.mjs");
