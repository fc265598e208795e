import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PayloadMemory } from "../../../../../src/adapters/evm/signers/process/payload-memory.ts";
import { DECLARATIONS, identityOf, type ToSign } from "../../../../../src/domain/keys/signing.ts";
import type { Address } from "../../../../../src/domain/lane.ts";

const SIGNERS: readonly Address[] = [`0x${"11".repeat(20)}`, `0x${"12".repeat(20)}`];
const [SIGNER, OTHER] = SIGNERS as [Address, Address];

function payload(nonce: number, value = 1n, because?: ToSign["because"], chainId = 1): ToSign {
  const fees = { type: "legacy", gasPrice: 1n } as const;
  return { chainId, nonce, to: OTHER, data: "0x", value, gas: 21_000n, fees, accessList: [], because };
}

interface Asked {
  readonly signer: Address;
  readonly term: number;
  readonly batch: readonly ToSign[];
}

const asked: fc.Arbitrary<Asked> = fc.record({
  signer: fc.constantFrom(...SIGNERS),
  term: fc.integer({ min: 1, max: 2 }),
  batch: fc.array(
    fc
      .record({
        nonce: fc.integer({ min: 0, max: 3 }),
        value: fc.bigInt({ min: 1n, max: 3n }),
        because: fc.option(fc.constantFrom(...DECLARATIONS), { nil: undefined, freq: 2 }),
        chainId: fc.integer({ min: 1, max: 2 }),
      })
      .map(({ nonce, value, because, chainId }) => payload(nonce, value, because, chainId)),
    { minLength: 1, maxLength: 3 },
  ),
});

describe("the signing process's record of signed payloads", () => {
  // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/payload-memory.ts
  it("allows no second payload for a nonce without a declared reason", () => {
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 40 }), (sequence) => {
        const memory = new PayloadMemory();
        const signed = new Map<string, { readonly term: number; readonly contents: Set<string> }>();
        for (const { signer, term, batch } of sequence) {
          if (memory.admit(signer, term, batch) !== null) continue;
          for (const each of batch) {
            const place = `${signer}:${each.chainId}`;
            const known = signed.get(`${place}:${each.nonce}`);
            const { content } = identityOf(each);
            const isSecond = known?.term === term && lastTerm(signed, place) === term && !known.contents.has(content);
            if (isSecond) expect(each.because).not.toBeUndefined();
            if (lastTerm(signed, place) !== term) forget(signed, place);
            const contents = signed.get(`${place}:${each.nonce}`)?.contents ?? new Set();
            signed.set(`${place}:${each.nonce}`, { term, contents: contents.add(content) });
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it("stores nothing of a batch if one payload is refused", () => {
    const memory = new PayloadMemory();
    expect(memory.admit(SIGNER, 1, [payload(1)])).toBeNull();
    expect(memory.admit(SIGNER, 1, [payload(2), payload(1, 2n)])).toMatchObject({ index: 1, undeclared: true });
    expect(memory.admit(SIGNER, 1, [payload(2, 9n)])).toBeNull();
  });

  // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/payload-memory.ts
  it("refuses two payloads for one nonce within one request", () => {
    const twice = [payload(1), payload(1, 2n, "replace")];
    expect(new PayloadMemory().admit(SIGNER, 1, twice)).toMatchObject({ index: 1, undeclared: false });
    expect(new PayloadMemory().admit(SIGNER, 1, [payload(1), payload(1, 1n, undefined, 2)])).toBeNull();
  });

  // protects [Signers] src/adapters/evm/signers/process/payload-memory.ts
  it("is separate for each lane and each fencing token", () => {
    const memory = new PayloadMemory();
    expect(memory.admit(SIGNER, 1, [payload(1)])).toBeNull();
    expect(memory.admit(OTHER, 1, [payload(1, 2n)])).toBeNull();
    expect(memory.admit(SIGNER, 2, [payload(1, 3n)])).toBeNull();
    expect(memory.admit(SIGNER, 2, [payload(1, 4n)])).toMatchObject({ undeclared: true });
    expect(memory.size).toBe(2);
  });

  // protects [Signers] src/adapters/evm/signers/process/payload-memory.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("removes only payloads whose signing failed", () => {
    const memory = new PayloadMemory();
    const batch = [payload(1), payload(2)];
    expect(memory.admit(SIGNER, 1, batch)).toBeNull();
    memory.notSigned(SIGNER, 1, batch.slice(1));
    expect(memory.size).toBe(1);
    expect(memory.admit(SIGNER, 1, [payload(1, 9n)]), "signed before the other failed").toMatchObject({ index: 0 });
    const reprice = [payload(2, 9n, "reprice")];
    expect(memory.admit(SIGNER, 1, reprice), "nothing that was signed stands against it").toBeNull();
    memory.notSigned(SIGNER, 1, reprice);
    memory.admit(SIGNER, 1, [payload(1)]);
    memory.notSigned(SIGNER, 1, [payload(1)]);
    expect(memory.admit(SIGNER, 1, [payload(1, 9n)]), "signed once, and not the second time").not.toBeNull();
    memory.notSigned(SIGNER, 2, [payload(1)]);
    expect(memory.admit(SIGNER, 1, [payload(1, 9n)]), "another term's").not.toBeNull();
    expect(memory.size).toBe(1);
  });

  // protects [Signers] src/adapters/evm/signers/process/payload-memory.ts
  it("has a limited size", () => {
    const memory = new PayloadMemory({ nonces: 6, noncesOfLane: 4, payloadsOfNonce: 2 });
    for (let nonce = 0; nonce < 5; nonce++) expect(memory.admit(SIGNER, 1, [payload(nonce)])).toBeNull();
    expect(memory.size).toBe(4);
    expect(memory.admit(SIGNER, 1, [payload(0, 2n)]), "forgotten").toBeNull();
    for (let nonce = 0; nonce < 3; nonce++) expect(memory.admit(OTHER, 1, [payload(nonce)])).toBeNull();
    expect(memory.size, "the first lane is forgotten").toBe(3);
    expect(memory.admit(OTHER, 1, [payload(0, 2n, "replace")])).toBeNull();
    expect(memory.admit(OTHER, 1, [payload(0, 3n, "replace")])).toBeNull();
    expect(
      memory.admit(OTHER, 1, [payload(0, 1n, "reprice")]),
      "its first payload is forgotten, and may stand",
    ).toBeNull();
    expect(memory.size).toBe(3);
  });
});

function lastTerm(signed: ReadonlyMap<string, { readonly term: number }>, place: string): number | undefined {
  return [...signed].find(([key]) => key.startsWith(`${place}:`))?.[1].term;
}

function forget(signed: Map<string, unknown>, place: string): void {
  for (const key of signed.keys()) if (key.startsWith(`${place}:`)) signed.delete(key);
}
