import { spawn } from "node:child_process";
import { once } from "node:events";
import { open, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openExport } from "../../../src/main/remote/export-file.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

/** Opens a file on a disk that takes only half of each write, as an almost full one does. */
const openHalf: typeof open = async (...given) => {
  const file = await open(...given);
  const write = file.write.bind(file);
  const half = (data: Buffer, offset: number, length: number, at: number) =>
    write(data, offset, Math.ceil(length / 2), at);
  return Object.assign(file, { write: half as typeof file.write });
};

/** Opens a file on a full disk. */
const openFull: typeof open = async () => open("/dev/full", "r+");

describe("the file of an export", () => {
  let directory: Awaited<ReturnType<typeof makeTemporaryDirectory>>;
  let path: string;
  beforeEach(async () => {
    directory = await makeTemporaryDirectory();
    path = join(directory.path, "out.jsonl");
  });
  afterEach(() => directory.remove());

  // protects [Figures] src/main/remote/export-file.ts
  it("refuses a second export while one writes to it, and allows it afterwards", async () => {
    const first = await openExport(path);
    const said = /another export writes to .*out\.jsonl \(process \d+ on .*\): wait for it to end, or remove .*\.lock/;
    await expect(openExport(path)).rejects.toThrow(said);
    await first.append('{"seq":1}\n', 0);
    await first.mark("1\n");
    await first.close();
    const second = await openExport(path);
    expect(second.position).toBe("1\n");
    await second.close();
    expect((await readdir(directory.path)).sort()).toEqual(["out.jsonl", "out.jsonl.position"]);
  });

  // protects [Figures] src/main/remote/export-file.ts
  it("is taken over from a process that crashed, and not from one that runs, elsewhere or unknown", async () => {
    const child = spawn("true");
    await once(child, "exit");
    const dead = { id: "a", host: hostname(), pid: child.pid, since: "2026-01-01T00:00:00Z" };
    const lockedBy = (text: string) => writeFile(`${path}.lock`, text);
    await lockedBy(JSON.stringify(dead));
    const file = await openExport(path);
    await file.close();
    for (const holder of [{ ...dead, pid: process.ppid }, { ...dead, host: "elsewhere" }, "not JSON"]) {
      await lockedBy(typeof holder === "string" ? holder : JSON.stringify(holder));
      await expect(openExport(path)).rejects.toThrow(/another export writes to/);
    }
  });

  // protects [Figures] src/main/remote/export-file.ts
  it("is not written to by an export whose lock somebody removed", async () => {
    const first = await openExport(path);
    await writeFile(`${path}.lock`, "");
    await expect(first.append("row\n", 0)).rejects.toThrow(/another export/);
    await expect(first.mark("1\n")).rejects.toThrow(/another export/);
    await first.close();
    expect(await readdir(directory.path)).toEqual(["out.jsonl.lock"]);
  });

  it("is refused if it is a symbolic link, a device or a directory", async () => {
    await writeFile(join(directory.path, "other"), "");
    await symlink(join(directory.path, "other"), path);
    await expect(openExport(path)).rejects.toThrow(/out\.jsonl is a symbolic link: name the file itself/);
    await expect(openExport("/dev/full")).rejects.toThrow(/\/dev\/full is not a regular file/);
    await expect(openExport(directory.path)).rejects.toThrow(/is not a regular file/);
    await expect(openExport(join(directory.path, "none", "out"))).rejects.toThrow(/cannot be written: ENOENT/);
  });

  // protects [Figures] src/main/remote/export-file.ts
  it("keeps its position if the disk is full, so that the next run continues there", async () => {
    const first = await openExport(path);
    await first.append("one\n", 0);
    await first.mark("after 1\n");
    await first.close();
    const full = await openExport(path, openFull);
    await expect(full.append("two\n", 0)).rejects.toThrow(/out\.jsonl cannot be written: .*run the command again/);
    await full.close();
    const next = await openExport(path);
    expect(next.position).toBe("after 1\n");
    await next.append("two\n", 4);
    await next.close();
    expect(await readFile(path, "utf8")).toBe("one\ntwo\n");
  });

  // protects [Figures] src/main/remote/export-file.ts
  it("writes all rows of a page, even if the disk takes them in parts", async () => {
    const file = await openExport(path, openHalf);
    await file.append('{"seq":1}\n{"seq":2}\n', 0);
    await file.append('{"seq":3,"note":"é"}\n', 20);
    expect(await readFile(path, "utf8")).toBe('{"seq":1}\n{"seq":2}\n{"seq":3,"note":"é"}\n');
    await file.close();
  });
});
