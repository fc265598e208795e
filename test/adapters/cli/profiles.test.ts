import { describe, expect, it } from "vitest";
import type { Profiles } from "../../../src/adapters/cli/profiles.ts";
import { runCommand } from "../../support/command.ts";

/** A profile file in memory. */
function kept(start: Profiles = { current: null, profiles: {} }) {
  const world = { profiles: start };
  const actions = {
    readProfiles: async () => ({ file: "/home/x/profiles.json", ...world.profiles }),
    writeProfiles: async (profiles: Profiles) => {
      world.profiles = profiles;
    },
  };
  const run = (argv: readonly string[], files = {}) => runCommand(["profile", ...argv], { actions, files });
  return { world, run };
}

describe("fencepost profile", () => {
  it("uses the first stored node until another node is chosen", async () => {
    const { world, run } = kept();
    await run(["add", "local", "--url", "http://127.0.0.1:3000/"]);
    await run(["add", "production", "--url", "https://relay.example", "--api-key", "secret"]);
    expect(world.profiles).toEqual({
      current: "local",
      profiles: {
        local: { url: "http://127.0.0.1:3000" },
        production: { url: "https://relay.example", apiKey: "secret" },
      },
    });
    await run(["use", "production"]);
    expect(world.profiles.current).toBe("production");
    await run(["remove", "production"]);
    expect(world.profiles).toEqual({ current: null, profiles: { local: { url: "http://127.0.0.1:3000" } } });
  });

  it("reads an API key from standard input, so that it is not stored in the shell history", async () => {
    const { world, run } = kept();
    await run(["add", "p", "--url", "http://n", "--api-key", "-"], { "-": "secret\n" });
    expect(world.profiles.profiles.p).toEqual({ url: "http://n", apiKey: "secret" });
  });

  it("lists the stored profiles without their API keys", async () => {
    const { run } = kept({ current: "p", profiles: { p: { url: "http://n", apiKey: "the-secret" } } });
    const { stdout } = await run(["list"]);
    expect(stdout).toMatch(/^\* +p +http:\/\/n +yes$/m);
    expect(`${stdout}${(await run(["list", "--json"])).stdout}`).not.toContain("the-secret");
    expect((await kept().run(["list"])).stdout).toContain("fencepost profile add NAME --url URL");
  });

  it.each([
    [["add", "a b", "--url", "http://n"], /a b is no name for a profile/],
    [["add", "p", "--url", "relay.example"], /no URL of a node/],
    [["add", "p", "--url", "file:///etc"], /no URL of a node/],
    [["use", "nobody"], /there is no profile nobody; there is none yet/],
    [["remove", "constructor"], /there is no profile constructor/],
    [["add", "p"], /--url/],
  ])("refuses the arguments %j", async (argv, line) => {
    const { world, run } = kept();
    const { code, stderr } = await run(argv);
    expect(code).toBe(2);
    expect(stderr).toMatch(line);
    expect(world.profiles.profiles).toEqual({});
  });
});
