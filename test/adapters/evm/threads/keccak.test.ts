import fc from "fast-check";
import { keccak256 as byViem } from "viem/utils";
import { describe, expect, it } from "vitest";
import { type Keccak, keccak256, keccakLoaded, loadKeccak } from "../../../../src/adapters/evm/threads/keccak.js";

await keccakLoaded;

describe("Keccak-256 in the worker threads", () => {
  it("equals viem's result", () => {
    for (const length of [0, 1, 55, 56, 135, 136, 137, 271, 272, 273, 16_383, 16_384, 16_385, 131_072]) {
      expectSame(Buffer.alloc(length, length + 1));
    }
    fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), expectSame));
  });

  it("returns a copy, which the next hash does not overwrite", () => {
    const first = keccak256(Buffer.from("first"));
    const kept = Buffer.from(first);
    keccak256(Buffer.from("second"));
    expect(Buffer.from(first)).toEqual(kept);
  });

  it("uses viem if WebAssembly is not available", async () => {
    const fallback = await loadKeccak(() => Promise.reject(new Error("WebAssembly is not supported")));
    const text = Buffer.from("Fencepost");
    expect(fallback(text)).toEqual(keccak256(text));
  });

  // protects [Many lanes] src/adapters/evm/signers/worker/serialise.js, src/adapters/evm/threads/keccak.js
  it("takes less than half of the processor time of viem's JavaScript", async () => {
    const text = Buffer.alloc(120, 7);
    const inJavaScript: Keccak = (bytes) => byViem(bytes, "bytes");
    const [ours, theirs] = [[] as number[], [] as number[]];
    for (let turn = 0; turn < 20; turn++) {
      ours.push(processorMicros(keccak256, text));
      theirs.push(processorMicros(inJavaScript, text));
    }
    expect(Math.min(...ours)).toBeLessThan(Math.min(...theirs) / 2);
  });
});

function expectSame(bytes: Uint8Array): void {
  expect(keccak256(bytes)).toEqual(byViem(bytes, "bytes"));
}

/** CPU time in microseconds for a hundred hashes. */
function processorMicros(hash: Keccak, text: Uint8Array): number {
  const before = process.cpuUsage();
  for (let i = 0; i < 100; i++) hash(text);
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
