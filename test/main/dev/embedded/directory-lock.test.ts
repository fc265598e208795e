import { readdir, readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lockDirectory } from "../../../../src/main/dev/embedded/directory-lock.ts";
import { findProcess } from "../../../../src/main/dev/embedded/processes.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../../support/temporary-directory.ts";

let temporary: TemporaryDirectory;

beforeEach(async () => {
  temporary = await makeTemporaryDirectory();
});

afterEach(() => temporary.remove());

describe("the lock on a data directory", () => {
  test("has only one holder at a time", async () => {
    const lock = await lockDirectory(temporary.path);
    await expect(lockDirectory(temporary.path)).rejects.toMatchObject({
      code: "ALREADY_RUNNING",
      message: `another Fencepost is already running on this directory (pid ${process.pid})`,
    });
    await lock.release();
    await expect(lockDirectory(temporary.path)).resolves.toBeDefined();
  });

  test("can be taken from a dead holder under the next lock number", async () => {
    await symlink("999999999:long-gone", join(temporary.path, "supervisor.7"));
    const lock = await lockDirectory(temporary.path);
    expect(await readdir(temporary.path)).toEqual(["supervisor.8"]);
    await lock.release();
    await lockDirectory(temporary.path);
    expect(await readdir(temporary.path)).toEqual(["supervisor.9"]);
  });

  test("is not considered held if a different process now has the holder's pid", async () => {
    await symlink(`${process.pid}:another-life`, join(temporary.path, "supervisor.1"));
    await expect(lockDirectory(temporary.path)).resolves.toBeDefined();
  });

  test("is held as long as the process of its holder lives", async () => {
    const parent = process.ppid;
    await symlink(`${parent}:${(await findProcess(parent))?.identity}`, join(temporary.path, "supervisor.1"));
    await expect(lockDirectory(temporary.path)).rejects.toThrow(`(pid ${parent})`);
  });

  test("can be taken from a dead holder by exactly one of many claimants", async () => {
    await symlink("999999999:long-gone", join(temporary.path, "supervisor.1"));
    const outcomes = await Promise.allSettled(Array.from({ length: 25 }, () => lockDirectory(temporary.path)));
    expect(outcomes.filter((outcome) => outcome.status === "fulfilled")).toHaveLength(1);
    const [name = ""] = await readdir(temporary.path);
    expect(await readlink(join(temporary.path, name))).toMatch(new RegExp(`^${process.pid}:`));
  });

  test("ignores files with only similar names", async () => {
    await symlink("x", join(temporary.path, "supervisor.old"));
    await expect(lockDirectory(temporary.path)).resolves.toBeDefined();
  });

  test("can be released although the directory was deleted", async () => {
    const directory = await makeTemporaryDirectory();
    const lock = await lockDirectory(directory.path);
    await rm(directory.path, { recursive: true });
    await expect(lock.release()).resolves.toBeUndefined();
  });
});
