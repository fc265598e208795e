import { homedir } from "node:os";
import { describe, expect, it } from "vitest";
import { readEnvironment } from "../../../src/adapters/system/environment.ts";

describe("the environment of the process", () => {
  it("includes the home directory of its account", () => {
    expect(readEnvironment()).toMatchObject({ home: homedir(), workingDirectory: process.cwd(), pid: process.pid });
  });

  it("has / as the home directory if the account has none", () => {
    const unknown = () => {
      throw Object.assign(new Error("A system error occurred: uv_os_homedir returned ENOENT"), {
        code: "ERR_SYSTEM_ERROR",
      });
    };
    expect(readEnvironment(unknown).home).toBe("/");
  });
});
