// What a person does with the console besides the story: keys alone, files, a
// phone, large letters, signing out; and what becomes of the token.
import assert from "node:assert/strict";
import {after, before, describe, test} from "node:test";
import {Daemon, until} from "./lib/daemon.mjs";
import {browser, Console, missing} from "./lib/page.mjs";
import {pretend} from "./lib/pretend.mjs";
import {open, rows} from "./lib/states.mjs";

const skip = await missing();
const script = `--- next when "touch it"
call write_file {"path":"log.txt","content":"high water\\n"}
--- next when "touch it"
text "As you decided."
--- next when "forever"
text "It begins"
hang
--- next always
text "Nothing to say."
`;

describe("using the console", {skip, concurrency: false}, () => {
  let b;
  let d;
  let token;
  const afters = [];

  before(async () => {
    d = new Daemon({after: (fn) => afters.push(fn)}, {script});
    token = d.token("--name", "person");
    await d.start();
    b = await browser({after: (fn) => afters.push(fn)});
  });
  after(async () => {
    for (const fn of afters.reverse()) await fn();
  });

  async function tab(t, options = {}) {
    const context = await b.createBrowserContext();
    t.after(() => context.close());
    const c = await Console.open(b, d, {context, allow: ["/acp"], ...options});
    t.after(() => assert.deepEqual(c.problems, [], "what the browser complained of"));
    return c;
  }
  const pretended = async (t, options = {}) => (await tab(t, {before: pretend, ...options})).signIn("tok");
  const focused = (c) => c.page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute("aria-label") || document.activeElement.textContent.trim());

  test("the whole story by keys alone", async (t) => {
    const c = await tab(t);
    const {keyboard} = c.page;
    const tabTo = async (name) => {
      for (let i = 0; i < 40; i++) {
        if ((await focused(c)) === name) return;
        await keyboard.press("Tab");
      }
      assert.fail(`Tab never comes to ${name}`);
    };
    await c.page.waitForSelector("#token", {visible: true});
    await keyboard.type(token);
    await keyboard.press("Enter");
    await c.page.waitForSelector("#app:not([hidden])");
    await tabTo("new");
    await keyboard.press("Enter");
    await c.page.waitForSelector("#cwd", {visible: true});
    assert.equal(await focused(c), "cwd");
    await keyboard.type(d.project);
    await keyboard.press("Enter");
    await c.page.waitForFunction(() => document.activeElement.id === "composer-text" && !document.getElementById("send").disabled);
    await keyboard.type("touch it");
    await keyboard.press("Enter");
    await c.asked();
    assert.match(await c.page.title(), /^\(1\) Permission needed: /, "it calls from another tab");
    await c.quiet();
    await keyboard.press("y");
    await c.sees("As you decided.");
    await c.idle();
    assert.doesNotMatch(await c.page.title(), /Permission/);
    assert.equal(d.read("log.txt"), "high water\n");
    assert.equal(await focused(c), "composer-text", "the focus is back where it was");
    await keyboard.type("forever");
    await keyboard.press("Enter");
    await c.sees("It begins");
    await keyboard.down("Control");
    await keyboard.press(".");
    await keyboard.up("Control");
    await c.sees("Cancelled");
    await c.idle();
    await keyboard.down("Control");
    await keyboard.press("k");
    await keyboard.up("Control");
    await c.page.waitForFunction(() => document.activeElement.id === "search");
    await keyboard.press("ArrowDown");
    assert.equal(await c.page.evaluate(() => document.activeElement.dataset.id), await c.session());
    await keyboard.press("ArrowUp");
    assert.equal(await focused(c), "search");
    await tabTo("More");
    await keyboard.press("Enter");
    await keyboard.press("ArrowDown");
    assert.equal(await focused(c), "copylink");
    await keyboard.press("ArrowUp");
    assert.equal(await focused(c), "delete");
    await keyboard.press("Escape");
    assert.equal(await focused(c), "More");
    await tabTo("signout");
    await keyboard.press("Enter");
    await c.page.waitForFunction(() => document.activeElement.id === "token");
  });

  test("the token stands in the tab's own storage and nowhere else", async (t) => {
    const c = await tab(t);
    const seen = [];
    c.page.on("request", (r) => seen.push(r.url(), r.headers().referer ?? "", r.postData() ?? ""));
    await c.signIn(token);
    await c.begin();
    await c.prompt("hello");
    await c.sees("Nothing to say.");
    await c.page.reload();
    await c.sees("Nothing to say.");
    const kept = await c.page.evaluate(() => ({
      page: document.documentElement.outerHTML, fields: [...document.querySelectorAll("input")].map((i) => i.value).join(" "), local: JSON.stringify(localStorage), cookie: document.cookie,
      state: JSON.stringify(history.state), referrer: document.referrer, address: location.href, loaded: performance.getEntries().map((e) => e.name).join(" "), own: Object.values(sessionStorage),
    }));
    assert.deepEqual(kept.own, [token]);
    delete kept.own;
    for (const [where, text] of Object.entries({...kept, seen: seen.join(" "), log: d.log})) assert.ok(!text?.includes(token), `the token stands in ${where}`);
    assert.ok(!seen.some((s) => s.includes("token=")));
  });

  test("signing out takes everything away", async (t) => {
    const c = await (await tab(t)).signIn(token);
    await c.begin();
    await c.prompt("the secret albatross");
    await c.sees("Nothing to say.");
    await c.page.type("#composer-text", "half a secret thought");
    await c.page.click("#signout");
    await c.page.waitForSelector("#token", {visible: true});
    const left = await c.page.evaluate(() => document.documentElement.outerHTML + [...document.querySelectorAll("input, textarea")].map((e) => e.value) + document.title + JSON.stringify(sessionStorage));
    assert.doesNotMatch(left, /albatross|secret|Nothing to say/);
    assert.ok(!left.includes(token));
    await c.page.goBack();
    assert.equal(await c.page.$eval("#app", (e) => e.hidden), true, "the way back shows nothing");
  });

  test("files go along, and are there after a reload", async (t) => {
    const c = await (await tab(t)).signIn(token);
    await c.begin();
    await (await c.page.$("#pick")).evaluate((input) => {
      const chosen = new DataTransfer();
      chosen.items.add(new File(["06:12 4.4 m\n"], "tides.txt", {type: "text/plain"}));
      input.files = chosen.files;
      input.dispatchEvent(new Event("change"));
    });
    await c.sees("tides.txt", "#files");
    await c.page.evaluate(() => {
      const drop = new DataTransfer();
      drop.items.add(new File([new Uint8Array([0, 1, 2, 255])], "moon.bin"));
      document.getElementById("feed").dispatchEvent(new DragEvent("drop", {dataTransfer: drop, bubbles: true, cancelable: true}));
      const big = new DataTransfer();
      big.items.add(new File([new Uint8Array(11 << 20)], "sea.bin"));
      document.getElementById("composer-text").dispatchEvent(new ClipboardEvent("paste", {clipboardData: big, bubbles: true, cancelable: true}));
    });
    await c.sees("moon.bin", "#files");
    await c.sees(/sea\.bin is too large/, "#files-error");
    await c.page.click('#files [aria-label="Take moon.bin away"]');
    await c.page.waitForFunction(() => document.querySelectorAll("#files li").length === 1);
    await c.prompt("what is in it?");
    await c.sees("tides.txt", "#feed .user");
    assert.equal(await c.page.$eval("#files", (e) => e.hidden), true);
    await c.sees("Nothing to say.");
    await c.page.reload();
    await c.sees("tides.txt", "#feed .user");
  });

  test("a session is saved as Markdown", async (t) => {
    const c = await pretended(t);
    await open(c);
    const saved = c.page.evaluate(() => new Promise((done) => {
      URL.createObjectURL = (blob) => {
        blob.text().then(done);
        return "blob:x";
      };
      HTMLAnchorElement.prototype.click = () => {};
    }));
    await c.page.click("#menu summary");
    await c.page.click("#save");
    assert.match(await saved, /^# Correct the evening tide\n\n.*\n\n## Prompt\n\nPlease correct[\s\S]*\+\| 23:55 \| 0\.7 m \|[\s\S]*## Answer\n\n## What changed/);
  });

  test("with large letters everything can be reached", async (t) => {
    const c = await pretended(t, {width: 640, height: 430});
    await open(c, undefined, {hold: ["session/prompt"]});
    await c.prompt("Go on");
    const wide = () => c.page.evaluate(() => [document.documentElement, document.getElementById("feed"), document.querySelector("dialog[open]")].filter((e) => e && e.scrollWidth > e.clientWidth + 1).length);
    assert.equal(await wide(), 0);
    assert.ok(await c.page.$eval("#feed", (e) => e.clientHeight > 120), "room for the story");
    for (const [width, height] of [[640, 430], [320, 256]]) {
      await c.page.setViewport({width, height});
      await c.page.evaluate(() => gateway.ask("s0", {toolCallId: "p", title: "rm -rf build ".repeat(12), kind: "execute", rawInput: {}}, [
        {optionId: "a", name: "Allow once", kind: "allow_once"}, {optionId: "b", name: "Always allow it in this session", kind: "allow_always"}, {optionId: "c", name: "Reject", kind: "reject_once"},
      ]));
      await c.asked();
      assert.equal(await wide(), 0, `${width} px`);
      await c.shot(`large-letters-${width}`);
      await c.page.click("#ask .answer.reject");
      await c.page.waitForFunction(() => !document.getElementById("ask").open);
      assert.deepEqual((await c.page.evaluate(() => gateway.sent.at(-1).result.outcome)), {outcome: "selected", optionId: "c"});
    }
  });

  test("who wants no motion gets none", async (t) => {
    const c = await pretended(t);
    await open(c, undefined, {hold: ["session/prompt"]});
    await c.prompt("Go on");
    const moves = () => c.page.evaluate(() => document.getAnimations().length);
    await until(moves, "something that moves");
    await c.page.emulateMediaFeatures([{name: "prefers-reduced-motion", value: "reduce"}]);
    await until(async () => (await moves()) === 0, "rest");
  });

  test("what streams is not read out; its end is, once", async (t) => {
    const c = await pretended(t);
    await open(c, [], {hold: ["session/prompt"]});
    await c.page.evaluate(() => {
      window.heard = [];
      new MutationObserver(() => window.heard.push(document.getElementById("say").textContent)).observe(document.getElementById("say"), {childList: true, characterData: true, subtree: true});
    });
    await c.prompt("Go on");
    await c.page.evaluate(() => {
      for (let i = 0; i < 300; i++) gateway.update("s0", {sessionUpdate: "agent_message_chunk", messageId: "m", content: {type: "text", text: `word${i} `}});
    });
    await c.sees("word299");
    await c.page.evaluate(() => gateway.answer("session/prompt", {stopReason: "end_turn"}));
    await c.idle();
    await c.frames();
    const heard = await c.page.evaluate(() => window.heard);
    assert.deepEqual([heard.length, heard[0]], [2, "The agent works"]);
    assert.match(heard[1], /^The agent answered: word0 word1 /);
    assert.ok(heard[1].length < 450);
    // What is live is small, and the story is not.
    assert.deepEqual(await c.page.$$eval('[aria-live]:not([aria-live="off"]), [role="status"], [role="alert"]', (all) => all.filter((e) => e.closest("#feed")).length), 0);
  });

  test("code that comes in grows in place, and much of it leaves the page at hand", async (t) => {
    const c = await pretended(t);
    await open(c, []);
    const seen = await c.page.evaluate(async () => {
      const say = (text) => gateway.update("s0", {sessionUpdate: "agent_message_chunk", messageId: "m", content: {type: "text", text}});
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      say("```js\nfirst\n");
      while (!document.querySelector("#feed pre")) await frame();
      const pre = document.querySelector("#feed pre");
      let frames = 0;
      let on = true;
      const counting = (async () => {
        for (; on; frames++) await frame();
      })();
      for (let i = 0; i < 10_000; i++) {
        say(`const line_${i} = "some words of code";\n`);
        if (i % 20 === 0) await new Promise((done) => setTimeout(done));
      }
      say("```\n\nThat was it.");
      while (!document.querySelector("#feed .md p")) await frame();
      on = false;
      await counting;
      return {same: document.querySelector("#feed pre") === pre, lines: document.querySelector("#feed pre").textContent.split("\n").length, frames};
    });
    t.diagnostic(JSON.stringify(seen));
    assert.ok(seen.same, "it was made anew");
    assert.ok(seen.lines >= 10_001, `${seen.lines} lines`);
    assert.ok(seen.frames > 20, `${seen.frames} frames while it came`);
  });

  test("500 sessions are listed and searched; names of others are text", async (t) => {
    const c = await pretended(t);
    const bad = '"><img src=x onerror="document.title=1"><script>document.title=2</script>\u202e';
    await c.page.evaluate((list, bad) => {
      list[7] = {...list[7], title: bad, cwd: `/home/${bad}`, sessionId: "bad", _meta: {berth: {agent: bad, label: bad}}};
      gateway.sessions = list;
      gateway.meta.agents = [{alias: bad, title: bad, description: bad}, {alias: "b", title: bad}];
      gateway.drop();
    }, rows(500), bad);
    await c.page.waitForFunction(() => document.querySelectorAll("#sessions li").length === 500);
    await c.page.type("#search", "onerror");
    await c.page.waitForFunction(() => document.querySelectorAll("#sessions li").length === 1);
    await c.page.evaluate(() => (location.hash = "#/new"));
    await c.page.waitForSelector("#agent", {visible: true});
    await c.page.evaluate(() => (location.hash = "#/s/bad"));
    await c.page.waitForSelector("#story", {visible: true});
    await c.frames();
    assert.deepEqual(await c.page.evaluate(() => [document.images.length, document.scripts.length, /\u202e/.test(document.body.innerText)]), [3, 2, false]);
    assert.match(await c.page.title(), /onerror/);
  });
});
