/** Messages that a real chain node (EDR) signs with its own key, and the lies of a false one. */
import { describe, expect, it, onTestFinished } from "vitest";
import { createEvmChain, type EvmChain } from "../../../../src/adapters/evm/chain.ts";
import { withNodeKeys } from "../../../../src/adapters/evm/signers/node-keys.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import type { Address, Hex } from "../../../../src/domain/lane.ts";
import type { MessageToSign } from "../../../../src/domain/messages/message.ts";
import { startEmbeddedChain } from "../../../../src/main/dev/embedded/start-chain.ts";
import { SigningRefused } from "../../../../src/ports/signer.ts";
import { addressOf } from "../../../contracts/signer.contract.ts";
import { MemorySigner } from "../../../doubles/memory-signer.ts";
import { createSeededEntropy } from "../../../doubles/seeded-entropy.ts";
import { type FaultyRpc, Refusal, startFaultyRpc } from "../../../support/faulty-rpc.ts";
import { LIES, MESSAGES, signedByViem, signersBy } from "../../../support/messages.ts";
import { recordTelemetry } from "../../../support/recorded-telemetry.ts";
import { failure } from "../../../support/signer-away.ts";

const KEY: Hex = `0x${"11".repeat(32)}`;
const ADDRESS = addressOf(KEY);
const [PERSONAL, PERMIT] = MESSAGES as readonly [MessageToSign, MessageToSign];

async function open(...urls: readonly string[]): Promise<EvmChain> {
  const ports = { telemetry: recordTelemetry(), clock: systemClock, entropy: createSeededEntropy(1) };
  const chain = await createEvmChain({ urls, ...ports });
  onTestFinished(() => chain.close());
  return chain;
}

async function serve(): Promise<FaultyRpc> {
  const server = await startFaultyRpc();
  onTestFinished(() => server.close());
  return server;
}

describe("a message of an account whose key the chain node holds", () => {
  it("is signed by the node, and viem and ethers recover the account", async () => {
    const node = await startEmbeddedChain();
    onTestFinished(() => node.stop());
    const chain = await open(node.url);
    const account = (node.accounts[0]?.address ?? "").toLowerCase() as Address;
    for (const message of MESSAGES) {
      const signature = await chain.signMessage(account, message);
      expect(signature).toMatch(/^0x[\da-f]{128}1[bc]$/);
      expect(await signersBy(message, signature)).toEqual([account, account]);
    }
    const stranger = await failure(chain.signMessage(`0x${"99".repeat(20)}`, PERSONAL));
    expect(stranger).toMatchObject({ lies: false, message: expect.stringMatching(/refused to sign/) });
  });

  // protects [Signers] src/adapters/evm/submit/sign-at-node.ts, src/adapters/evm/signers/recovery.ts
  it.each(LIES)("is not signed by an answer %s", async (_, lie, words) => {
    const server = await serve();
    const chain = await open(server.url);
    for (const [method, asked] of [
      ["personal_sign", PERSONAL],
      ["eth_signTypedData_v4", PERMIT],
    ] as const) {
      const answer = await lie(KEY, asked);
      server.on(method, () => answer);
      const refused = await failure(chain.signMessage(ADDRESS, asked));
      expect(refused).toMatchObject({ lies: true, message: expect.stringMatching(words) });
    }
  });

  // protects [Signers] src/adapters/evm/submit/sign-at-node.ts
  it("is shown to one endpoint alone, a private one if there is any", async () => {
    const [hidden, shown, read] = [await serve(), await serve(), await serve()];
    const signature = await signedByViem(KEY, PERSONAL);
    for (const server of [hidden, shown, read]) server.on("personal_sign", () => signature);
    const chain = await open(`${read.url}#send=never`, shown.url, `${hidden.url}#send=only`);
    expect(await chain.signMessage(ADDRESS, PERSONAL)).toBe(signature);
    hidden.on("personal_sign", () => {
      throw new Refusal(-32601, "the method personal_sign does not exist/is not available");
    });
    const away = await failure(chain.signMessage(ADDRESS, PERSONAL));
    expect(away).toMatchObject({ lies: false, message: expect.stringMatching(/personal_sign does not exist/) });
    hidden.failAlways({ kind: "cut" });
    expect(await failure(chain.signMessage(ADDRESS, PERSONAL))).toMatchObject({ lies: false });
    expect([shown, read].flatMap((server) => server.calls("personal_sign"))).toEqual([]);
  });
});

describe("a signer with accounts of chain nodes", () => {
  it("has the node of the message's chain sign, and signs with its own keys otherwise", async () => {
    const own = new MemorySigner([KEY]);
    const asked: unknown[] = [];
    const chain = {
      chainId: 1,
      signMessage: async (address: Address, { digest }: MessageToSign) => {
        asked.push([address, digest]);
        return "0x5e" as const;
      },
    };
    const atNode: Address = `0x${"5e".repeat(20)}`;
    const custody = (address: Address) => (address === atNode ? ("node" as const) : ("local" as const));
    const { addresses, sign, signMessages, close } = own;
    const bound = { addresses: addresses.bind(own), sign: sign.bind(own), close: close.bind(own) };
    const signer = withNodeKeys({ ...bound, custody, signMessages: signMessages.bind(own) }, [{ chain }]);
    expect(await signer.signMessages(atNode, [PERSONAL, PERMIT])).toEqual(["0x5e", "0x5e"]);
    expect(asked).toEqual([PERSONAL, PERMIT].map(({ digest }) => [atNode, digest]));
    expect(await signer.signMessages(ADDRESS, [PERSONAL])).toEqual([await signedByViem(KEY, PERSONAL)]);
    const elsewhere = signer.signMessages(atNode, [PERSONAL, { ...PERSONAL, chainId: 5 }]);
    await expect(elsewhere).rejects.toMatchObject({ name: "SigningRefused", index: 1 });
    await expect(elsewhere).rejects.toBeInstanceOf(SigningRefused);
    expect(asked).toHaveLength(3);
  });
});
