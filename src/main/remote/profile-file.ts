/** File of profiles: URLs and API keys of one user, readable by that user only. */
import { mkdir, open } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { PROFILE_NAME, type Profile, type ProfileActions, type Profiles } from "../../adapters/cli/profiles.ts";
import type { Environment } from "../../adapters/system/environment.ts";
import { misuse } from "./misuse.ts";

/** Permission bits of group and others. */
const OPEN_TO_OTHERS = 0o077;
export const NO_PROFILES: Profiles = { current: null, profiles: {} };

/** Path of the profile file, by the XDG base directory specification: a relative XDG_CONFIG_HOME is ignored. */
export function profileFileOf({ variables, home }: Pick<Environment, "variables" | "home">): string {
  const { XDG_CONFIG_HOME: configured = "" } = variables;
  return join(isAbsolute(configured) ? configured : join(home, ".config"), "fencepost", "profiles.json");
}

export function profilesIn(file: string): ProfileActions {
  return {
    readProfiles: async () => ({ file, ...(await readProfiles(file)) }),
    writeProfiles: (profiles) => writeProfiles(file, profiles),
  };
}

/** Reads the profile file. Mode and content are read through one file handle, so that they belong to the same file. */
async function readProfiles(file: string) {
  const handle = await open(file, "r").catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT" || cause.code === "ENOTDIR") return null;
    throw misuse(`${file}: cannot be read (${cause.code})`);
  });
  if (handle === null) return NO_PROFILES;
  try {
    const { mode } = await handle.stat();
    if (process.platform !== "win32" && (mode & OPEN_TO_OTHERS) !== 0) {
      const octal = (mode & 0o777).toString(8).padStart(4, "0");
      throw misuse(`${file}: holds API keys and is open to other users (mode ${octal}): chmod 600 ${file}`);
    }
    return parse(await handle.readFile("utf8"), file);
  } finally {
    await handle.close();
  }
}

/** Parses the profile file. Errors quote none of its text, because it contains keys. */
function parse(text: string, file: string): Profiles {
  try {
    const { current = null, profiles } = JSON.parse(text) as Profiles;
    const isRight = Object.entries(profiles).every(([name, each]) => PROFILE_NAME.test(name) && isProfile(each));
    if (isRight && (current === null || typeof current === "string")) return { current, profiles };
  } catch {
    // Text that is not JSON gets the same error, below, as JSON of another shape.
  }
  throw misuse(`${file}: is not a valid profile file; remove it, and add the profiles again: fencepost profile add`);
}

function isProfile(value: unknown): value is Profile {
  const { url, apiKey } = (value ?? {}) as Partial<Profile>;
  return typeof url === "string" && (apiKey === undefined || typeof apiKey === "string");
}

/** Replaces the profile file atomically. */
async function writeProfiles(file: string, profiles: Profiles) {
  const { writeWhole } = await import("../../adapters/evm/signers/keystore.ts");
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeWhole(dirname(file), basename(file), `${JSON.stringify(profiles, null, 2)}\n`);
}
