// The providers' own clients, and the fakes that they are held against.
import {execFileSync, spawn} from "node:child_process";
import {createRequire} from "node:module";
import {join} from "node:path";
import {createInterface} from "node:readline";
import {fileURLToPath, pathToFileURL} from "node:url";
import {limit} from "./client.mjs";
import {out} from "./home.mjs";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const from = createRequire(new URL("../vendors/package.json", import.meta.url));

/** vendors is where the clients are installed. */
export const vendors = fileURLToPath(new URL("../vendors", import.meta.url));

/** missing says why what needs the clients cannot run here, undefined when it can. */
export function missing(...names) {
  for (const name of names) {
    try {
      from.resolve(name);
    } catch {
      return `${name} is not installed: npm ci --ignore-scripts in test/interop/vendors`;
    }
  }
}

/** load imports one of the clients. */
export const load = (name) => import(pathToFileURL(from.resolve(name)));

let built;

/** program builds the fakes once and returns their path. */
export function program() {
  if (!built) {
    built = join(out, process.platform === "win32" ? "fakes.exe" : "fakes");
    execFileSync("go", ["build", "-o", built, "./test/interop/fakes"], {cwd: root, stdio: "inherit"});
  }
  return built;
}

/** Fakes starts fakes until the test ends. */
export class Fakes {
  constructor(t) {
    this.child = spawn(program(), ["serve"], {stdio: ["pipe", "pipe", "inherit"]});
    this.lines = createInterface({input: this.child.stdout})[Symbol.asyncIterator]();
    const exit = new Promise((done) => this.child.on("exit", done));
    t.after(async () => {
      this.child.stdin.end();
      await limit(exit, "the fakes do not stop");
    });
  }

  /** start returns {url, path, key, model} of a new fake that plays a scene. */
  async start(dialect, scene) {
    this.child.stdin.write(`${JSON.stringify({dialect, scene})}\n`);
    const {value, done} = await limit(this.lines.next(), `the fake ${dialect}`);
    if (done) throw new Error(`there is no fake ${dialect} that plays ${scene}`);
    return JSON.parse(value);
  }
}

/** problems returns what a strict provider would have refused so far. */
export const problems = async (at) => (await fetch(`${at.url}/-/problems`)).json();
