import { readdir, readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { lockDirectory } from "../../../../src/main/dev/embedded/directory-lock.ts";
import { findProcess } from "../../../../src/main/dev/embedded/processes.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../../support/temporary-directory.ts";

/**
 * Simulates changes by other processes, between the time when a process checks the directory and the time when it locks
 * it.
 */
let meanwhile: (() => Promise<void>) | null = null;

vi.mock("node:fs/promises", async (importOriginal) => {
  const original = await importOriginal<typeof import("node:fs/promises")>();
  const lookThenPause = async (path: string) => {
    const names = await original.readdir(path);
    const others = meanwhile;
    meanwhile = null;
    await others?.();
    return names;
  };
  return { ...original, readdir: lookThenPause };
});

let temporary: TemporaryDirectory;
let living: string;

beforeEach(async () => {
  temporary = await makeTemporaryDirectory();
  living = `${process.ppid}:${(await findProcess(process.ppid))?.identity}`;
  await symlink("999999999:long-gone", join(temporary.path, "supervisor.1"));
});

afterEach(() => temporary.remove());

test("a claim of the directory lock is refused if another process takes the same lock number first", async () => {
  meanwhile = () => symlink(living, join(temporary.path, "supervisor.2"));
  await expect(lockDirectory(temporary.path)).rejects.toThrow(`(pid ${process.ppid})`);
  expect(await readlink(join(temporary.path, "supervisor.2"))).toBe(living);
});

test("a claim of the directory lock is withdrawn if another process has a higher lock number", async () => {
  meanwhile = async () => {
    await symlink(living, join(temporary.path, "supervisor.3"));
    await rm(join(temporary.path, "supervisor.1"));
  };
  await expect(lockDirectory(temporary.path)).rejects.toThrow(`(pid ${process.ppid})`);
  expect(await readdir(temporary.path)).toEqual(["supervisor.3"]);
});

test("a claim of the directory lock succeeds if the holder releases the lock meanwhile", async () => {
  await rm(join(temporary.path, "supervisor.1"));
  await symlink(living, join(temporary.path, "supervisor.1"));
  meanwhile = async () => {
    await rm(join(temporary.path, "supervisor.1"));
    await symlink("released", join(temporary.path, "supervisor.1"));
  };
  await lockDirectory(temporary.path);
  expect(await readdir(temporary.path)).toEqual(["supervisor.2"]);
});
