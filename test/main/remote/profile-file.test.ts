import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { profileFileOf, profilesIn } from "../../../src/main/remote/profile-file.ts";

let home = "";
let file = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "fencepost-profiles-"));
  file = profileFileOf({ variables: {}, home });
});
afterEach(() => rmSync(home, { recursive: true }));

const PROFILES = { current: "p", profiles: { p: { url: "http://n", apiKey: "secret" } } };

function written(text: string, mode = 0o600): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode });
  chmodSync(file, mode);
}

describe("the file of command-line profiles", () => {
  it("is in XDG_CONFIG_HOME if that path is absolute", () => {
    expect(profileFileOf({ variables: { XDG_CONFIG_HOME: "/x" }, home })).toBe("/x/fencepost/profiles.json");
    expect(profileFileOf({ variables: { XDG_CONFIG_HOME: "x" }, home })).toBe(
      `${home}/.config/fencepost/profiles.json`,
    );
    expect(file).toBe(`${home}/.config/fencepost/profiles.json`);
  });

  // protects [The command line] src/main/remote/profile-file.ts
  it("is readable by its owner only, and leaves no temporary file", async () => {
    await profilesIn(file).writeProfiles(PROFILES);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
    expect(await profilesIn(file).readProfiles()).toEqual({ file, ...PROFILES });
    await profilesIn(file).writeProfiles({ current: null, profiles: {} });
    expect(readdirSync(dirname(file))).toEqual(["profiles.json"]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("has no profiles if it does not exist", async () => {
    expect(await profilesIn(file).readProfiles()).toMatchObject({ current: null, profiles: {} });
  });

  // protects [The command line] src/main/remote/profile-file.ts
  it.each(["0640", "0604", "0644", "0660"])("is refused if other users can read it (mode %s)", async (octal) => {
    written(JSON.stringify(PROFILES), Number.parseInt(octal, 8));
    await expect(profilesIn(file).readProfiles()).rejects.toThrow(
      `${file}: holds API keys and is open to other users (mode ${octal}): chmod 600 ${file}`,
    );
  });

  it.each(["", "{", "null", "7", '{"profiles":{"p":{}}}', '{"profiles":{"p":{"url":1}}}', '{"current":3}'])(
    "is refused without quoting its content if that is %j",
    async (text) => {
      written(`${text}`);
      await expect(profilesIn(file).readProfiles()).rejects.toThrow(/is not a valid profile file; remove it/);
    },
  );
});
