// Runs the tests with a Node that is new enough for acpx: this one, or the one
// that the development dependencies bring for this platform. npm does not put
// that one on the path by itself.
import {spawnSync} from "node:child_process";
import {existsSync, readdirSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");

/** recent reports whether a version such as "v22.13.0" is 22.13 or newer. */
function recent(version) {
  const [major, minor] = version.replace(/^v/, "").split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 13);
}

function newestNode() {
  if (recent(process.version)) return process.execPath;
  const brought = readdirSync(modules)
    .filter((name) => name.startsWith("node-"))
    .map((name) => join(modules, name, "bin", "node"))
    .filter(existsSync);
  const found = brought.find((node) => recent(spawnSync(node, ["--version"], {encoding: "utf8"}).stdout ?? ""));
  if (!found) {
    console.error(`acpx needs Node 22.13 or newer; this is ${process.version} and no other came with the dependencies`);
    process.exit(1);
  }
  return found;
}

const files = readdirSync(here).filter((name) => name.endsWith(".test.mjs")).sort();
const {status, error} = spawnSync(newestNode(), ["--test", "--test-concurrency=1", ...process.argv.slice(2), ...files], {cwd: here, stdio: "inherit"});
if (error) throw error;
process.exitCode = status ?? 1;
