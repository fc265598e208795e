import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { runCommand } from "../../support/command.ts";

const scriptFor = async (shell: string) => (await runCommand(["completion", shell])).stdout;

/** The completions that a real bash offers; the last word is still being typed. */
async function offered(words: readonly string[]): Promise<readonly string[]> {
  const quoted = ["fencepost", ...words].map((word) => `'${word}'`).join(" ");
  const asked = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}; _fencepost; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const script = `set -u\n${await scriptFor("bash")}\n${asked}`;
  const said = execFileSync("bash", ["--norc", "-c", script], { encoding: "utf8" });
  return said.split("\n").filter((word) => word !== "");
}

describe("fencepost completion", () => {
  it("offers commands and subcommands", async () => {
    expect(await offered([""])).toEqual(expect.arrayContaining(["send", "watch", "doctor", "--json"]));
    expect(await offered(["wa"])).toEqual(["watch"]);
    expect(await offered(["keys", ""])).toEqual(expect.arrayContaining(["new", "import", "api"]));
    expect(await offered(["keys", "api", "r"])).toEqual(["revoke"]);
  });

  it("offers the options of a command at any position", async () => {
    expect(await offered(["send", "--signer", "0xabc", "--valu"])).toEqual(["--value"]);
    expect(await offered(["list", "--state", "ST"])).toEqual(["STUCK"]);
    expect(await offered(["resolve", "some-id", "--then", ""])).toEqual(["track", "stuck", "manual"]);
    expect(await offered(["completion", "f"])).toEqual(["fish"]);
  });

  it("supports every command in each shell, and refuses unknown shells", async () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      const script = await scriptFor(shell);
      for (const command of ["send", "explain", "nonces", "profile"]) expect(script).toContain(command);
    }
    expect((await runCommand(["completion", "tcsh"])).code).toBe(2);
  });

  it("prints one JSON value with --json", async () => {
    const { stdout } = await runCommand(["completion", "fish", "--json"]);
    expect(JSON.parse(stdout)).toEqual({ shell: "fish", script: await scriptFor("fish") });
  });
});
