import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it, onTestFinished } from "vitest";
import { openSigner } from "../../../../../src/adapters/evm/signers/open-signer.ts";
import type { SigningAccount } from "../../../../../src/adapters/evm/signers/remote/viem-account.ts";
import { systemClock } from "../../../../../src/adapters/system/clock.ts";
import type { Hex } from "../../../../../src/domain/lane.ts";
import type { MessageToSign } from "../../../../../src/domain/messages/message.ts";
import { SigningRefused } from "../../../../../src/ports/signer.ts";
import { addressOf, describeSignerContract } from "../../../../contracts/signer.contract.ts";
import { LIES, MESSAGES, signedByViem } from "../../../../support/messages.ts";
import { failure } from "../../../../support/signer-away.ts";

const KEY: Hex = `0x${"11".repeat(32)}`;
const ADDRESS = addressOf(KEY);
const [PERSONAL, PERMIT] = MESSAGES as readonly [MessageToSign, MessageToSign];

const openAccounts = (accounts: readonly SigningAccount[]) =>
  openSigner({ sources: { accounts }, clock: systemClock, environment: {} });

async function open(overrides: Partial<SigningAccount>) {
  const signer = await openAccounts([{ ...privateKeyToAccount(KEY), ...overrides }]);
  onTestFinished(() => signer.close());
  return signer;
}

describeSignerContract("accounts of viem", (keys) => openAccounts(keys.map((key) => privateKeyToAccount(key))), {
  runs: 50,
});

describe("an account of viem that signs messages", () => {
  // protects [Signers] src/adapters/evm/signers/recovery.ts, src/adapters/evm/signers/remote/viem-account.ts
  it.each(LIES)("is reported as dishonest if it answers with a signature %s", async (_, lie, words) => {
    for (const asked of [PERSONAL, PERMIT]) {
      const answer = async () => (await lie(KEY, asked)) as Hex;
      const signer = await open({ signMessage: answer, signTypedData: answer });
      const refused = await failure(signer.signMessages(ADDRESS, [asked]));
      expect(refused).toMatchObject({ lies: true, message: expect.stringMatching(words) });
    }
  });

  it("may leave out the 27 of v, which its signature then has", async () => {
    const whole = await signedByViem(KEY, PERSONAL);
    const short = `${whole.slice(0, -2)}${whole.endsWith("1b") ? "00" : "01"}` as Hex;
    const signer = await open({ signMessage: async () => short });
    expect(await signer.signMessages(ADDRESS, [PERSONAL])).toEqual([whole]);
  });

  it("refuses, and is not unavailable, if it has no such method", async () => {
    const { signMessage: _, signTypedData: __, ...plain } = privateKeyToAccount(KEY);
    const signer = await openAccounts([plain]);
    onTestFinished(() => signer.close());
    for (const asked of [PERSONAL, PERMIT])
      await expect(signer.signMessages(ADDRESS, [asked])).rejects.toBeInstanceOf(SigningRefused);
    const half = await open({ signTypedData: undefined as never });
    await expect(half.signMessages(ADDRESS, [PERSONAL, PERMIT])).rejects.toMatchObject({ index: 1 });
  });

  it("is unavailable if it fails", async () => {
    const signer = await open({ signMessage: async () => Promise.reject(new Error("HSM is locked")) });
    const away = await failure(signer.signMessages(ADDRESS, [PERSONAL]));
    expect(away).toMatchObject({ lies: false, message: "HSM is locked" });
  });
});
