// Every state of the page, in light, dark and narrow: axe finds nothing wrong,
// nothing scrolls sideways, and pictures are left for people to look at.
import assert from "node:assert/strict";
import {after, before, describe, test} from "node:test";
import {complaints, of} from "./lib/axe.mjs";
import {Daemon} from "./lib/daemon.mjs";
import {browser, Console, missing} from "./lib/page.mjs";
import {pretend} from "./lib/pretend.mjs";
import {states} from "./lib/states.mjs";

const skip = await missing();

describe("every state", {skip, concurrency: false}, () => {
  let b;
  let d;
  let context; // a tab of its own for each state, but files are loaded once
  const afters = [];

  before(async () => {
    d = await new Daemon({after: (fn) => afters.push(fn)}, {script: '--- next always\ntext "x"\n'}).start();
    b = await browser({after: (fn) => afters.push(fn)});
    context = await b.createBrowserContext();
  });
  after(async () => {
    for (const fn of afters.reverse()) await fn();
  });

  for (const [name, arrange, {signIn = true} = {}] of states) {
    test(name, async (t) => {
      const c = await Console.open(b, d, {context, before: pretend});
      t.after(() => c.page.close());
      if (signIn) await c.signIn("tok");
      await arrange(c);
      const wrong = [];
      for (const [width, height, scheme, rules] of [[1280, 860, "light"], [1280, 860, "dark", of.colours], [360, 740, "light", of.layout]]) {
        await c.page.setViewport({width, height});
        await c.page.emulateMediaFeatures([{name: "prefers-color-scheme", value: scheme}, {name: "prefers-reduced-motion", value: "reduce"}]);
        await c.frames();
        const as = `${width > 400 ? "wide" : "narrow"}-${scheme}`;
        await c.shot(`${name.replaceAll(" ", "-")}-${as}`);
        wrong.push(...(await complaints(c.page, rules)).map((w) => `${as}: ${w}`));
        const sideways = await c.page.evaluate(() => [document.documentElement, ...document.querySelectorAll("#feed, #sidebar, #sessions, #session, dialog[open], dialog[open] .matter")]
          .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "none").map((e) => e.id || e.className || e.tagName));
        wrong.push(...sideways.map((w) => `${as}: ${w} scrolls sideways`));
      }
      assert.deepEqual(wrong, []);
      assert.deepEqual(c.problems, [], "what the browser complained of");
    });
  }
});
