/** The wall clock of a node's process, which a fault can set. The monotonic clock goes on, as on a machine whose time is set. */
import { rename, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import type { Variables } from "../node-process.ts";

export interface WallClock {
  /** Sets the difference to the true time, in ms. The process notices it within 50 ms. */
  set(offByMs: number): Promise<void>;
}

/** Loaded by the node before its own code, in each of its threads. */
const preload = (file: string) => `
import { readFileSync } from "node:fs";
const RealDate = Date;
let offByMs = 0;
const look = () => { try { offByMs = Number(readFileSync(new URL(${JSON.stringify(file)}), "utf8")); } catch {} };
look();
setInterval(look, 50).unref();
globalThis.Date = class Date extends RealDate {
  constructor(...given) { if (given.length === 0) super(RealDate.now() + offByMs); else super(...given); }
  static now() { return RealDate.now() + offByMs; }
};`;

export async function openWallClock(path: string): Promise<WallClock & { readonly variables: Variables }> {
  const set = async (offByMs: number) => {
    await writeFile(`${path}.new`, String(offByMs));
    await rename(`${path}.new`, path);
  };
  await set(0);
  const source = encodeURIComponent(preload(pathToFileURL(path).href));
  return { set, variables: { NODE_OPTIONS: `--import=data:text/javascript,${source}` } };
}
