// Turns through a real inference engine: llama.cpp, with a model of bigrams
// behind an OpenAI-compatible address.
import assert from "node:assert/strict";
import test from "node:test";
import {Client, limit, M} from "./lib/client.mjs";
import {missing, serveEngine} from "./lib/engine.mjs";
import {Home} from "./lib/home.mjs";

const home = (t, url, agent = "") => new Home(t, {config: `
[providers.engine]
type = "openai-compatible"
base_url = "${url}"
models.bigrams = { context_window = 8192 }

[agents.main]
model = "engine/bigrams"
${agent}
`});

test("llama.cpp streams turns", {skip: missing()}, async (t) => {
  const {url, open} = await serveEngine(t);

  await t.test("to its end", async (t) => {
    const c = await Client.open(t, home(t, url));
    const id = await c.session();
    const {stopReason} = await c.prompt(id, "Berth runs the turns of a coding agent");
    assert.equal(stopReason, "end_turn");
    assert.ok(c.of("agent_message_chunk").length > 3, "the answer did not come in pieces");
    assert.match(c.text(), /[a-z]{2}/);
    const {used, size} = c.of("usage_update").at(-1);
    assert.ok(used > 10 && size === 8192, `${used} of ${size} tokens`);
    t.diagnostic(`it said: ${JSON.stringify(c.text())}`);
    await c.prompt(id, "And once more, please"); // the same session goes on
    await c.close();
  });

  await t.test("to the token limit", async (t) => {
    const c = await Client.open(t, home(t, url, "max_output_tokens = 12"));
    const {stopReason} = await c.prompt(await c.session(), "Talk for ever");
    assert.equal(stopReason, "max_tokens");
    await c.close();
  });

  await t.test("until it is cancelled", async (t) => {
    const c = await Client.open(t, home(t, url));
    const id = await c.session();
    const turn = c.prompt(id, "Talk for ever");
    await c.next((u) => u.sessionUpdate === "agent_message_chunk");
    await c.notify(M.agent.session.cancel, {sessionId: id});
    assert.equal((await turn).stopReason, "cancelled");
    await limit((async () => { while (open() > 0) await new Promise(setImmediate); })(), "the engine still generates");
    await c.close();
  });
});
