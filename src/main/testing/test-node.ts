import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../adapters/system/clock.ts";
import { EmbeddedError } from "../dev/embedded/embedded-error.ts";
import { type Child, endChild, launch } from "../dev/embedded/processes.ts";

export type Variables = Readonly<Record<string, string>>;

export type TestNode = Awaited<ReturnType<typeof startTestNode>>;

/** src/ and dist/ have the same depth. */
const LAUNCHER = join(fileURLToPath(new URL("../../../", import.meta.url)), "bin", "fencepost.js");
const DRAIN_MS = 15_000;

/** Starts `fencepost start` with only these settings, and waits until it is ready. It ends with this process. */
export async function startTestNode(variables: Variables) {
  const { PATH = "", HOME = "" } = process.env;
  const command = [process.execPath, LAUNCHER, "start"];
  const child = launch(command, { env: { PATH, HOME, ...variables }, stdio: ["ignore", "pipe", "pipe"] }, "TERM");
  const { url } = await readyLine(child);
  release(child);
  return {
    url,
    /** `kill` is kill -9: nothing is handed over, and the next node recovers from the database. */
    stop: async (how: "drain" | "kill") => {
      child.handle.ref();
      await endChild(child, systemClock, how === "kill" ? [] : [["SIGTERM", DRAIN_MS]]);
    },
  };
}

async function readyLine({ handle, ended }: Child): Promise<{ readonly url: string }> {
  const ready = new Promise<string>((resolve) => {
    let stdout = "";
    handle.stdout?.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      const line = /^\{"ready":true.*\}$/m.exec(stdout);
      if (line !== null) resolve(line[0]);
    });
  });
  const first = await Promise.race([ready, ended]);
  if (typeof first === "string") return JSON.parse(first) as { readonly url: string };
  const message = first.stderr.trim().split("\n").slice(-3).join(" ");
  throw new EmbeddedError("START_FAILED", `the node of the test did not start: ${message || first.how}`);
}

/** Lets the process end although a test forgot to stop its stack; the node ends with it. */
function release({ handle }: Child): void {
  handle.unref();
  for (const pipe of [handle.stdout, handle.stderr]) (pipe as (Readable & { unref?(): void }) | null)?.unref?.();
}
