/** Runs the shell blocks of a page as printed, with replacements for the addresses and files that they name. */
import { chmodSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import { blocksOf } from "../architecture/rules/vocabulary.ts";
import { readText } from "../architecture/tree.ts";
import { type FencepostProcess, spawnProgram, type Variables } from "./node-process.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

export const shellBlocks = (page: string): readonly string[] => blocksOf(readText(page), "sh");

const LAUNCHER = fileURLToPath(new URL("../../bin/fencepost.js", import.meta.url));
/**
 * Programs that precede all others in PATH. The `curl` among them fails if the node refuses a request, so that the
 * page's command fails too.
 */
const STAND_INS = {
  npx: `shift\nexec "${process.execPath}" "${LAUNCHER}" "$@"`,
  fencepost: `exec "${process.execPath}" "${LAUNCHER}" "$@"`,
  curl: 'exec /usr/bin/curl --fail-with-body "$@"',
};

export interface Place {
  readonly variables?: Variables;
  /** Text to insert instead of a printed text, by the printed text. */
  readonly instead?: Readonly<Record<string, string>>;
  /** Files that the page assumes to exist. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Starts a script in a directory of its own, which is also its HOME. */
export async function startPrinted(script: string, place: Place): Promise<FencepostProcess> {
  const { path, remove } = await makeTemporaryDirectory();
  onTestFinished(remove);
  await mkdir(join(path, "bin"));
  for (const [name, text] of Object.entries(STAND_INS)) {
    writeFileSync(join(path, "bin", name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(path, "bin", name), 0o755);
  }
  for (const [name, text] of Object.entries(place.files ?? {})) {
    await mkdir(join(path, name, ".."), { recursive: true });
    writeFileSync(join(path, name), text, { mode: 0o600 });
  }
  const local = Object.entries(place.instead ?? {}).reduce(
    (text, [printed, here]) => text.replaceAll(printed, here),
    script,
  );
  const paths = `${join(path, "bin")}:${place.variables?.PATH ?? process.env.PATH}`;
  return spawnProgram("bash", ["-euo", "pipefail", "-c", local], {
    directory: path,
    variables: { XDG_CONFIG_HOME: path, ...place.variables, PATH: paths },
  });
}

/** Runs a script and returns its standard output; fails if a command of the page fails. */
export async function runPrinted(script: string, place: Place): Promise<string> {
  const shell = await startPrinted(script, place);
  const { code } = await shell.exited;
  expect({ code, said: shell.stderr() }, shell.stdout()).toEqual({ code: 0, said: expect.any(String) });
  return shell.stdout();
}
