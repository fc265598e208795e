/** Finds the signing process of a node through /proc. */
import { readdirSync, readFileSync } from "node:fs";
import { waitUntil } from "./wait-until.ts";

const NAME = "fencepost-sign";

/** The pid of a node's signing process; null if it has none now. */
function signingProcessOf(pid: number): number | null {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(" "),
  );
  return children.map(Number).find((child) => child > 0 && read(`/proc/${child}/cmdline`).startsWith(NAME)) ?? null;
}

export function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

export const isGone = (pid: number) => !read(`/proc/${pid}/cmdline`).startsWith(NAME);

export function untilThere(pid: number): Promise<number> {
  return waitUntil(() => signingProcessOf(pid), "there is a signing process");
}
