import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../adapters/system/clock.ts";
import { EmbeddedError } from "../dev/embedded/embedded-error.ts";
import { type Child, endChild, launch } from "../dev/embedded/processes.ts";

export type Variables = Readonly<Record<string, string>>;

export type TestNode = Awaited<ReturnType<typeof startTestNode>>;

/** src/ and dist/ lie at the same depth. */
const LAUNCHER = join(fileURLToPath(new URL("../../../", import.meta.url)), "bin", "fencepost.js");
const DRAIN_MS = 15_000;

/** `fencepost start` with these settings and no others, ready. It ends when this process does. */
export async function startTestNode(variables: Variables) {
  const { PATH = "", HOME = "" } = process.env;
  const command = [process.execPath, LAUNCHER, "start"];
  const child = launch(command, { env: { PATH, HOME, ...variables }, stdio: ["ignore", "pipe", "pipe"] }, "TERM");
  const { url } = await readyLine(child);
  release(child);
  return {
    url,
    /** `kill` is kill -9: nothing is handed over, and what it held must be found again in the database. */
    stop: async (how: "drain" | "kill") => {
      child.handle.ref();
      await endChild(child, systemClock, how === "kill" ? [] : [["SIGTERM", DRAIN_MS]]);
    },
  };
}

async function readyLine({ handle, ended }: Child): Promise<{ readonly url: string }> {
  const ready = new Promise<string>((resolve) => {
    let said = "";
    handle.stdout?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const line = /^\{"ready":true.*\}$/m.exec(said);
      if (line !== null) resolve(line[0]);
    });
  });
  const first = await Promise.race([ready, ended]);
  if (typeof first === "string") return JSON.parse(first) as { readonly url: string };
  const words = first.stderr.trim().split("\n").slice(-3).join(" ");
  throw new EmbeddedError("START_FAILED", `the node of the test did not start: ${words || first.how}`);
}

/** A test that forgets to stop its stack can end all the same; the node ends with it. */
function release({ handle }: Child): void {
  handle.unref();
  for (const pipe of [handle.stdout, handle.stderr]) (pipe as (Readable & { unref?(): void }) | null)?.unref?.();
}
