// Stands between a client and an agent and writes every line of both
// directions to a file:
//
//   node tee.mjs FILE COMMAND [ARG...]
//
// The bytes pass through as they are.
import {spawn} from "node:child_process";
import {appendFileSync} from "node:fs";

const [file, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, {stdio: ["pipe", "pipe", "inherit"]});

function lines(dir) {
  let rest = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (let i; (i = rest.indexOf(10)) >= 0; rest = rest.subarray(i + 1)) {
      // The line is quoted: it may be anything.
      appendFileSync(file, `${JSON.stringify({dir, line: rest.subarray(0, i).toString()})}\n`);
    }
  };
}

process.stdin.on("data", lines(">")).pipe(child.stdin);
child.stdout.on("data", lines("<")).pipe(process.stdout);
child.stdin.on("error", () => {}); // the agent may go first
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (e) => {
  console.error(`tee: ${command}: ${e.message}`);
  process.exitCode = 127;
});
child.on("exit", (code, signal) => {
  process.stdin.unpipe(child.stdin);
  process.stdin.pause();
  process.exitCode = signal ? 1 : code;
});
