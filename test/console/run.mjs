// Runs the tests that drive the page in a browser, three files at a time: they
// wait for pages, turns and clocks more than they work.
import {existsSync, readdirSync} from "node:fs";
import {run} from "node:test";
import * as reporters from "node:test/reporters";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const files = readdirSync(here).filter((name) => name.endsWith(".test.mjs") && name !== "logic.test.mjs").map((name) => join(here, name));

run({files, concurrency: 3})
  .on("test:fail", () => (process.exitCode = 1))
  .compose(reporters.spec)
  .pipe(process.stdout);

// What to look at, when somebody does: the page in light, dark and narrow.
process.on("exit", () => {
  const shots = ["story-light.png", "story-dark.png", "story-narrow-light.png"].map((name) => join(here, "out", name)).filter((path) => existsSync(path));
  if (shots.length) console.log(`what it looked like, these and more beside them:\n${shots.map((path) => `  ${path}`).join("\n")}`);
});
