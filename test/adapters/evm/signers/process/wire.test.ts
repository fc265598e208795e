import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Lines } from "../../../../../src/adapters/evm/signers/process/wire.ts";

describe("the line reader of a signing process", () => {
  // protects [Many lanes] src/adapters/evm/signers/process/wire.ts
  it("returns the same lines for any split of the input into chunks", () => {
    const piece = fc.constantFrom("", "a", "\n", "b\n", "\nc", "d\n\ne");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (chunks) => {
        const lines = new Lines();
        const taken = chunks.flatMap((chunk) => lines.take(chunk));
        expect(taken).toEqual(chunks.join("").split("\n").slice(0, -1));
      }),
    );
  });

  // protects [Many lanes] src/adapters/evm/signers/process/wire.ts
  it("copies a line that arrives in many chunks only once", () => {
    const chunk = "a".repeat(64 * 1024);
    const lines = new Lines();
    const before = process.cpuUsage();
    for (let count = 0; count < 1_000; count++) lines.take(chunk);
    const [line] = lines.take("\n");
    expect(process.cpuUsage(before).user).toBeLessThan(1_000_000);
    expect(line).toHaveLength(1_000 * chunk.length);
  });
});
