import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { openExport } from "../../../src/main/remote/export-file.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

/** A disk that takes only half of each write, as an almost full one does. */
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const open = async (...given: Parameters<typeof real.open>) => {
    const file = await real.open(...given);
    const write = file.write.bind(file) as (...given: unknown[]) => Promise<unknown>;
    const half = (data: Buffer | string, ...rest: number[]) =>
      typeof data === "string"
        ? write(Buffer.from(data), 0, Math.ceil(data.length / 2), rest[0])
        : write(data, rest[0], Math.ceil((rest[1] as number) / 2), rest[2]);
    return Object.assign(file, { write: half });
  };
  return { ...real, open };
});

describe("the file of an export", () => {
  // protects [Figures] src/main/remote/export-file.ts
  it("writes all rows of a page, even if the disk takes them in parts", async () => {
    const directory = await makeTemporaryDirectory();
    const path = join(directory.path, "out.jsonl");
    const file = await openExport(path);
    await file.append('{"seq":1}\n{"seq":2}\n', 0);
    await file.append('{"seq":3,"note":"é"}\n', 20);
    expect(await readFile(path, "utf8")).toBe('{"seq":1}\n{"seq":2}\n{"seq":3,"note":"é"}\n');
    await directory.remove();
  });
});
