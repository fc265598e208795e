import { spawn } from "node:child_process";
import { Socket } from "node:net";
import { CHILD_ENVIRONMENT } from "./processes.ts";

/**
 * Makes a child end when we end, even by SIGKILL, where no handler of ours can run. A shell waits on a pipe whose other
 * end only this process holds; the kernel closes it with us, the read returns, and the shell sends the signal. It stands
 * in a process group of its own, so that Ctrl-C in the terminal does not take it away first.
 *
 * The returned function dismisses the guard. Call it when the child has ended: its pid may then be another process's.
 */
export function guardChild(pid: number, signal: "INT" | "TERM"): () => void {
  const guard = spawn("/bin/sh", ["-c", 'read -r _; kill -s "$2" "$1" 2>/dev/null', "guard", String(pid), signal], {
    detached: true,
    cwd: "/",
    env: CHILD_ENVIRONMENT,
    stdio: ["pipe", "ignore", "ignore"],
  });
  // Without a shell there is no guard; the next start still finds and stops what was left behind.
  guard.on("error", () => undefined);
  guard.stdin.on("error", () => undefined);
  guard.unref();
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return () => void guard.kill("SIGKILL");
}
