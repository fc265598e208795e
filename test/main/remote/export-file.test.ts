import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
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

describe("the file of an export", () => {
  // protects [Figures] src/main/remote/export-file.ts
  it("writes all rows of a page, even if the disk takes them in parts", async () => {
    const directory = await makeTemporaryDirectory();
    const path = join(directory.path, "out.jsonl");
    const file = await openExport(path, openHalf);
    await file.append('{"seq":1}\n{"seq":2}\n', 0);
    await file.append('{"seq":3,"note":"é"}\n', 20);
    expect(await readFile(path, "utf8")).toBe('{"seq":1}\n{"seq":2}\n{"seq":3,"note":"é"}\n');
    await directory.remove();
  });
});
