import fc from "fast-check";
import { keccak256, parseTransaction, recoverTransactionAddress, type TransactionSerializable } from "viem";
import { privateKeyToAccount, privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Address, Hex } from "../../src/domain/lane.ts";
import type { Fees } from "../../src/domain/transaction/fees.ts";
import type { UnsignedTransaction } from "../../src/domain/transaction/transaction.ts";
import type { Signer } from "../../src/ports/signer.ts";
import { MESSAGES, signedByViem, signersBy } from "../support/messages.ts";

/** The suite's keys; the signer under test must hold exactly these. */
export const CONTRACT_KEYS: readonly Hex[] = [
  `0x${"11".repeat(32)}`,
  `0x${"0".repeat(63)}1`,
  "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140",
];

const UINT256_MAX = 2n ** 256n - 1n;
const SAMPLE: UnsignedTransaction = {
  chainId: 1,
  nonce: 7,
  to: `0x${"22".repeat(20)}`,
  data: "0x",
  value: 1n,
  gas: 21_000n,
  fees: { type: "eip1559", maxFeePerGas: 2n, maxPriorityFeePerGas: 1n },
  accessList: [],
};

export interface SignerAbilities {
  /** Number of property test runs; may be lowered for a signer that is slow by design. */
  readonly runs?: number;
  /** False for a double with fake signatures: everything but the signature must still equal viem's bytes. */
  readonly signatures?: boolean;
  /** False for a signer that gives a different signature of the same transaction each time. */
  readonly repeats?: boolean;
  /** False for a signer that cannot sign access lists (Web3Signer): its test transactions have none. */
  readonly accessLists?: boolean;
  /** The only chains that the signer signs for; any chain if absent. */
  readonly chainIds?: readonly number[];
}

export function describeSignerContract(
  name: string,
  start: (keys: readonly Hex[]) => Promise<Signer>,
  { runs = 200, signatures = true, repeats = true, accessLists = true, chainIds = [] }: SignerAbilities = {},
): void {
  const comparable = signatures && repeats ? (raw: Hex) => raw : withoutSignature;
  describe(`Signer contract: ${name}`, () => {
    let signer: Signer;
    beforeAll(async () => {
      signer = await start(CONTRACT_KEYS);
    });
    afterAll(() => signer.close());

    it("lists its addresses in lower case", () => {
      expect(signer.addresses()).toEqual(CONTRACT_KEYS.map(addressOf));
    });

    it("returns the same bytes and hash as viem, for every transaction type", async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...CONTRACT_KEYS),
          accessLists ? transactions : plainTransactions,
          fc.constantFrom(null, ...chainIds),
          async (key, drawn, chainId) => {
            const known = chainIds.includes(drawn.chainId) || chainIds.length === 0;
            const transaction = known ? drawn : { ...drawn, chainId: chainId ?? 1 };
            const [signed] = await signer.sign(addressOf(key), [transaction]);
            const expected = await privateKeyToAccount(key).signTransaction(forViem(transaction));
            expect(comparable(signed?.rawTransaction ?? "0x")).toEqual(comparable(expected));
            expect(signed?.txHash).toBe(keccak256(signed?.rawTransaction ?? "0x"));
            if (!repeats && signatures) expect(await senderOf(signed?.rawTransaction)).toBe(addressOf(key));
          },
        ),
        { numRuns: runs },
      );
    });

    it("signs a batch in order, with the key of the requested address", async () => {
      const batch = Array.from({ length: 50 }, (_, nonce) => ({ ...SAMPLE, nonce }));
      const signed = await Promise.all(CONTRACT_KEYS.map((key) => signer.sign(addressOf(key), batch)));
      signed.forEach((each) => {
        expect(each.map(({ rawTransaction }) => parseTransaction(rawTransaction).nonce ?? 0)).toEqual(
          batch.map(({ nonce }) => nonce),
        );
      });
      expect(new Set(signed.flat().map(({ txHash }) => txHash)).size).toBe(150);
    });

    it("returns the same payload for the same input", async () => {
      const address = addressOf(CONTRACT_KEYS[0] as Hex);
      const [[first], [second]] = [await signer.sign(address, [SAMPLE]), await signer.sign(address, [SAMPLE])];
      expect(comparable(second?.rawTransaction ?? "0x")).toEqual(comparable(first?.rawTransaction ?? "0x"));
      expect(await signer.sign(address, [])).toEqual([]);
    });

    it("refuses an address that it has no key for", async () => {
      await expect(signer.sign(`0x${"99".repeat(20)}`, [SAMPLE])).rejects.toThrow(`0x${"99".repeat(20)}`);
    });

    it("signs messages as viem does, and viem and ethers recover its address", async () => {
      for (const key of CONTRACT_KEYS) {
        const made = await signer.signMessages(addressOf(key), MESSAGES, 1);
        expect(made).toHaveLength(MESSAGES.length);
        for (const [at, message] of MESSAGES.entries()) {
          const signature = made[at] as Hex;
          expect(signature).toMatch(/^0x[\da-f]{128}1[bc]$/);
          if (!signatures) continue;
          expect(await signersBy(message, signature)).toEqual([addressOf(key), addressOf(key)]);
          if (repeats) expect(signature).toBe(await signedByViem(key, message));
        }
      }
      expect(await signer.signMessages(addressOf(CONTRACT_KEYS[0] as Hex), [], 1)).toEqual([]);
    });

    it("refuses to sign a message for an address that it has no key for", async () => {
      const stranger: Address = `0x${"99".repeat(20)}`;
      await expect(signer.signMessages(stranger, MESSAGES, 1)).rejects.toThrow(stranger);
    });

    it("signs a whole batch or nothing", async () => {
      const address = addressOf(CONTRACT_KEYS[0] as Hex);
      const impossible: UnsignedTransaction = {
        ...SAMPLE,
        nonce: SAMPLE.nonce + 1,
        fees: { type: "legacy", gasPrice: 1n },
        accessList: [{ address: `0x${"33".repeat(20)}`, storageKeys: [] }],
      };
      await expect(signer.sign(address, [SAMPLE, impossible])).rejects.toThrow(/access list/);
      expect(await signer.sign(address, [SAMPLE])).toHaveLength(1);
    });
  });
}

async function senderOf(raw: Hex = "0x"): Promise<Address> {
  const serializedTransaction = raw as Parameters<typeof recoverTransactionAddress>[0]["serializedTransaction"];
  return (await recoverTransactionAddress({ serializedTransaction })).toLowerCase() as Address;
}

function withoutSignature(raw: Hex): unknown {
  const { r: _r, s: _s, v: _v, yParity: _y, ...unsigned } = parseTransaction(raw);
  return unsigned;
}

export function addressOf(key: Hex): Address {
  return privateKeyToAddress(key).toLowerCase() as Address;
}

const toHex = (bytes: Uint8Array): Hex => `0x${Buffer.from(bytes).toString("hex")}`;
const hex = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(toHex);
/** Amounts: small, huge, and at the boundaries of RLP's lengths. */
const amount = fc.oneof(
  fc.constantFrom(0n, 1n, 127n, 128n, 255n, 256n, UINT256_MAX),
  fc.bigInt({ min: 0n, max: UINT256_MAX }),
  fc.bigInt({ min: 0n, max: 2n ** 40n }),
);

const fees: fc.Arbitrary<Fees> = fc.oneof(
  fc.record({ type: fc.constantFrom("legacy" as const, "eip2930" as const), gasPrice: amount }),
  fc.tuple(amount, amount).map(([a, b]): Fees => {
    return { type: "eip1559", maxFeePerGas: a > b ? a : b, maxPriorityFeePerGas: a > b ? b : a };
  }),
);

const transactions: fc.Arbitrary<UnsignedTransaction> = fc
  .record({
    chainId: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 2 ** 47 })),
    nonce: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })),
    to: fc.option(hex(20)),
    data: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom<Hex>("0x", "0x00", "0x7f", "0x80") },
      { weight: 6, arbitrary: fc.uint8Array({ maxLength: 120 }).map(toHex) },
      { weight: 6, arbitrary: fc.uint8Array({ minLength: 250, maxLength: 300 }).map(toHex) },
      { weight: 1, arbitrary: fc.integer({ min: 65_500, max: 65_600 }).map((size): Hex => `0x${"5a".repeat(size)}`) },
    ),
    value: amount,
    gas: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    fees,
    accessList: fc.array(fc.record({ address: hex(20), storageKeys: fc.array(hex(32), { maxLength: 4 }) }), {
      maxLength: 4,
    }),
  })
  .map((transaction) => (transaction.fees.type === "legacy" ? { ...transaction, accessList: [] } : transaction));

/** Transactions without access lists, of every type that does not require one. */
const plainTransactions = transactions
  .filter(({ fees: { type } }) => type !== "eip2930")
  .map((transaction): UnsignedTransaction => ({ ...transaction, accessList: [] }));

function forViem({ fees: price, to, accessList, ...fields }: UnsignedTransaction): TransactionSerializable {
  const common = { ...fields, ...(to === null ? {} : { to }) };
  if (price.type === "legacy") return { ...common, ...price };
  const storage = { accessList: accessList.map((entry) => ({ ...entry, storageKeys: [...entry.storageKeys] })) };
  return { ...common, ...price, ...storage } as TransactionSerializable;
}
