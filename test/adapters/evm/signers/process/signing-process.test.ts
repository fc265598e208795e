import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { BadKey } from "../../../../../src/adapters/evm/signers/private-keys.ts";
import type { ToSign } from "../../../../../src/domain/keys/signing.ts";
import type { Hex } from "../../../../../src/domain/lane.ts";
import type { Message, MessageToSign, TypedData } from "../../../../../src/domain/messages/message.ts";
import { type Signer, SignerAway, SigningRefused } from "../../../../../src/ports/signer.ts";
import { addressOf, describeSignerContract } from "../../../../contracts/signer.contract.ts";
import { createManualClock, type ManualClock } from "../../../../doubles/manual-clock.ts";
import { type Hostile, hostileMessages, hostileRules } from "../../../../support/hostile-messages.ts";
import { MESSAGES, permit, RULES, text, toSign, typed } from "../../../../support/messages.ts";
import { policiesOf } from "../../../../support/policies.ts";
import { failure } from "../../../../support/signer-away.ts";
import {
  beginningOf,
  type FakeProcess,
  launchHere,
  openHere,
  wideBounds,
} from "../../../../support/signing-process.ts";
import { waitUntil } from "../../../../support/wait-until.ts";
import { startWeb3Signer } from "../../../../support/web3signer.ts";

const CHAINS = [1, 137, 2 ** 47];

describeSignerContract(
  "signing process",
  async (keys) =>
    eachInATermOfItsOwn(await openHere({ beginning: Promise.resolve(beginningOf(keys, wideBounds(CHAINS))) })),
  { chainIds: CHAINS },
);

/**
 * Signs each request under a new fencing token: the contract tests request the same nonces repeatedly, which is refused
 * under one token.
 */
function eachInATermOfItsOwn(signer: Signer): Signer {
  let term = 0;
  return { ...signer, sign: (address, transactions) => signer.sign(address, transactions, ++term) };
}

const KEY: Hex = `0x${"11".repeat(32)}`;
const ADDRESS = addressOf(KEY);
const BEGINNING = Promise.resolve(beginningOf([KEY], wideBounds([1])));

function transfer(nonce: number, value = 1n): ToSign {
  const fees = { type: "eip1559", maxFeePerGas: 2n, maxPriorityFeePerGas: 1n } as const;
  return { chainId: 1, nonce, to: ADDRESS, data: "0x", value, gas: 21_000n, fees, accessList: [] };
}

const open: Signer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((signer) => signer.close()));
});

async function start(options: Partial<Parameters<typeof openHere>[0]> = {}) {
  const signer = await openHere({ beginning: BEGINNING, ...options });
  open.push(signer);
  return signer;
}

describe("the signing process", () => {
  // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("names the refused payload of a batch", async () => {
    const signer = await start();
    await signer.sign(ADDRESS, [transfer(0)], 1);
    const second = signer.sign(ADDRESS, [transfer(1), transfer(0, 2n)], 1);
    await expect(second).rejects.toMatchObject({ name: "SigningRefused", index: 1, undeclared: true });
    await expect(second).rejects.toThrow(/nonce 0 has been signed with another payload/);
    const elsewhere = signer.sign(ADDRESS, [{ ...transfer(2), chainId: 5 }], 1);
    await expect(elsewhere).rejects.toBeInstanceOf(SigningRefused);
    await expect(elsewhere).rejects.toThrow(/chain 5 is not one of those/);
    expect(await signer.sign(ADDRESS, [{ ...transfer(0, 2n), because: "again" }], 1)).toHaveLength(1);
    expect(await signer.sign(ADDRESS, [transfer(0, 3n)], 2)).toHaveLength(1);
  });

  it("signs nothing before it has the policies", async () => {
    const processes: FakeProcess[] = [];
    const launch = () => {
      const launched = launchHere(() => undefined);
      processes.push(launched);
      return launched;
    };
    const bounds = { ...wideBounds([1]), policies: null };
    const signer = await start({ beginning: Promise.resolve(beginningOf([KEY], bounds)), launch });
    const upTo = (most: string) =>
      policiesOf({ signers: { [ADDRESS]: { maxValue: { perTransaction: most } } } }).signers;
    await expect(signer.sign(ADDRESS, [transfer(0)], 1)).rejects.toBeInstanceOf(SignerAway);
    signer.adoptPolicies?.(upTo("0"));
    await expect(signer.sign(ADDRESS, [transfer(0)], 1)).rejects.toThrow(/maxValue.perTransaction/);
    signer.adoptPolicies?.(upTo("5"));
    expect(await signer.sign(ADDRESS, [transfer(0)], 1)).toHaveLength(1);
    processes[0]?.kill();
    const again = async (value: bigint) => {
      for (;;) {
        const signed = await signer.sign(ADDRESS, [transfer(1, value)], 2).catch((error: unknown) => error);
        if (!(signed instanceof SignerAway)) return signed;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    expect(await again(6n)).toBeInstanceOf(SigningRefused);
    expect(await again(5n)).toHaveLength(1);
  });

  // protects [Signers] src/adapters/evm/signers/process/payload-memory.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("forgets payloads that the key service did not sign", async () => {
    const service = await startWeb3Signer({ keys: [KEY], chainId: 1 });
    onTestFinished(() => service.close());
    const remote = { url: service.url, addresses: null, caFile: null, certFile: null, keyFile: null };
    const beginning = { sources: { remote }, environment: {}, bounds: wideBounds([1]) };
    const signer = await start({ beginning: Promise.resolve(beginning) });
    service.answer = () => ({ status: 503, body: "" });
    await expect(signer.sign(ADDRESS, [transfer(0)], 1)).rejects.toBeInstanceOf(SignerAway);
    service.answer = null;
    expect(await signer.sign(ADDRESS, [transfer(0, 2n)], 1)).toHaveLength(1);
    const second = signer.sign(ADDRESS, [transfer(0, 3n)], 1);
    await expect(second, "this time it was signed").rejects.toMatchObject({ undeclared: true });
  });

  // protects [Many lanes] src/adapters/evm/signers/local-signer.ts, src/adapters/evm/signers/process/signing-process.ts
  it("gets the requests of many lanes in one message", async () => {
    let messages = 0;
    const signer = await start({ launch: () => launchHere(() => messages++) });
    messages = 0;
    await Promise.all(Array.from({ length: 640 }, (_, nonce) => signer.sign(ADDRESS, [transfer(nonce)], 1)));
    expect(messages).toBeLessThanOrEqual(1 + 640 / 64 + 1);
  });

  it("reports why it cannot start, and the node's start fails", async () => {
    const bad = Promise.resolve(beginningOf(["0xff"], wideBounds([1])));
    const processes: FakeProcess[] = [];
    const starting = openHere({ beginning: bad, launch: () => remember(processes) });
    await expect(starting).rejects.toBeInstanceOf(BadKey);
    await expect(starting).rejects.toThrow(/private key 1 is not 32 bytes of hex/);
    expect(await processes[0]?.ended).toBe("exit code 0");
  });

  it("ends when its node closes the channel", async () => {
    const processes: FakeProcess[] = [];
    const signer = await openHere({ beginning: BEGINNING, launch: () => remember(processes) });
    await signer.close();
    expect(await processes[0]?.ended).toBe("exit code 0");
    await expect(signer.sign(ADDRESS, [transfer(0)], 1)).rejects.toThrow(/was closed/);
    expect(processes).toHaveLength(1);
  });
});

describe("the signing process, asked to sign a message,", () => {
  const bounds = (messages: object | null) => ({
    ...wideBounds([1]),
    policies: policiesOf(messages === null ? {} : { signers: { [ADDRESS]: { messages } } }).signers,
  });
  const startWith = (messages: object | null) =>
    start({ beginning: Promise.resolve(beginningOf([KEY], bounds(messages))) });
  const refusal = async (signer: Signer, asked: MessageToSign) => {
    const error = await signer.signMessages(ADDRESS, [asked], 1).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(SigningRefused);
    return (error as SigningRefused).message;
  };
  const elsewhere = { ...typed(permit({}, { chainId: 5 })), chainId: 5 };
  const named = (name: string) => typed(permit({}, { name }));

  it.each<[string, MessageToSign, RegExp]>([
    ["of another domain", named("GOLD"), /messages\.permit\.domain\.name/],
    ["of a domain that looks alike", named("G\u043eld"), /messages\.permit\.domain\.name/],
    ["of another contract", typed(permit({}, { verifyingContract: ADDRESS })), /domain\.verifyingContract/],
    ["of a chain that is not configured", elsewhere, /chain 5 is not one of those/],
    ["for another spender", typed(permit({ spender: ADDRESS })), /messages\.permit\.fields\.spender/],
    ["for more than its rule", typed(permit({ value: "1001" })), /messages\.permit\.fields\.value/],
    ["with another prefix", text("Deliver all orders, at once"), /messages\.delivery\.prefix/],
    ["that is a digest", toSign({ kind: "personal", bytes: `0x${"61".repeat(32)}` }), /messages\.digest/],
    ["that is an authorisation", toSign({ kind: "personal", bytes: `0x05d8${"61".repeat(24)}` }), /never signed/],
    // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/serve-signer.ts
  ])("refuses one %s although the node asks for it", async (_, asked, words) => {
    expect(await refusal(await startWith(RULES), asked)).toMatch(words);
  });

  // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("refuses every hostile message by the same rule as the node, or as no message", async () => {
    const signer = await startWith(hostileRules(1));
    for (const { what, request, rule } of hostileMessages(ADDRESS, 1)) {
      const said = await refusal(signer, { chainId: 1, message: asNode(request), digest: `0x${"00".repeat(32)}` });
      expect(said, what).toMatch(rule === null ? /it is no message/ : new RegExp(`\\(${rule}\\)$`));
    }
  });

  // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("refuses it without rules for messages, and before it has the policies", async () => {
    for (const asked of MESSAGES) expect(await refusal(await startWith(null), asked)).toMatch(/no rule .* allows this/);
    const unknowing = { ...wideBounds([1]), policies: null };
    const signer = await start({ beginning: Promise.resolve(beginningOf([KEY], unknowing)) });
    await expect(signer.signMessages(ADDRESS, MESSAGES, 1)).rejects.toBeInstanceOf(SignerAway);
    signer.adoptPolicies?.(bounds(RULES).policies);
    expect(await signer.signMessages(ADDRESS, MESSAGES, 1)).toHaveLength(MESSAGES.length);
    signer.adoptPolicies?.(bounds(null).policies);
    await expect(signer.signMessages(ADDRESS, MESSAGES, 1)).rejects.toBeInstanceOf(SigningRefused);
  });

  // protects [Signers] src/adapters/evm/signers/process/wire.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("reads the content itself, so that no claim of the node about it counts", async () => {
    const signer = await startWith(RULES);
    const [, allowed] = MESSAGES as readonly [MessageToSign, MessageToSign];
    // The digest of a larger permit: the process signs the digest of the content, and the node finds the difference.
    const { digest } = typed(permit({ value: "1000000" }));
    const other = await failure(signer.signMessages(ADDRESS, [{ ...allowed, digest }], 1));
    expect(other).toMatchObject({ lies: true, message: expect.stringMatching(/the signing process signed another/) });
    const { message } = allowed as { message: TypedData };
    const forms: readonly (readonly [object, RegExp])[] = [
      [{ value: { ...message.value, value: "0x3e9" } }, /fields\.value/],
      [{ value: { ...message.value, value: 1e3 + 0.5 } }, /it is no message: .*must be a whole number/],
      [{ value: { ...message.value, value: ["1000", "1001"] } }, /it is no message/],
      [{ value: { ...message.value, amount: "1001" } }, /it is no message: .*no member of Permit/],
      [
        { types: { ...message.types, Permit: [...(message.types.Permit ?? []), { name: "x", type: "Permit" }] } },
        /itself/,
      ],
      [{ domain: { ...message.domain, chainId: "5" } }, /domain\.chainId/],
    ];
    for (const [change, words] of forms)
      expect(await refusal(signer, { ...allowed, message: { ...message, ...change } as Message })).toMatch(words);
  });

  it("names the refused message of a batch", async () => {
    const signer = await startWith(RULES);
    const asked = [...MESSAGES, text("something else")];
    await expect(signer.signMessages(ADDRESS, asked, 1)).rejects.toMatchObject({ index: MESSAGES.length });
  });
});

/** The message as a node that checks nothing would pass it on. */
function asNode({ message: asked, typedData }: Hostile["request"]): Message {
  if (typedData !== undefined) {
    const { message: value, ...rest } = typedData as { message: object };
    return { kind: "typedData", ...rest, value } as unknown as Message;
  }
  const bytes = typeof asked === "string" ? `0x${Buffer.from(asked).toString("hex")}` : (asked as { raw: string }).raw;
  return { kind: "personal", bytes } as Message;
}

function passing(clock: ManualClock, ms: number, fact: () => boolean): () => Promise<boolean> {
  return async () => {
    await clock.advance(ms);
    return fact();
  };
}

function remember(processes: FakeProcess[]): FakeProcess {
  const process = launchHere();
  processes.push(process);
  return process;
}

/**
 * Number of messages, in both directions, between node and signing process for the first start and ten requests, five
 * of them at once.
 */
const EXCHANGED = 16;

describe("a failing signing process", () => {
  it.each(Array.from({ length: EXCHANGED }, (_, at) => at))(
    // protects [Signers] src/adapters/evm/signers/process/signing-process.ts
    "loses no request silently if it is killed at message %i",
    async (at) => {
      let count = 0;
      let launches = 0;
      const launch = () => {
        launches++;
        return launchHere((process) => {
          if (count++ === at) process.kill();
        });
      };
      const signer = await start({ launch }).catch(() => start({ launch }));
      const signed = new Set<string>();
      const sign = async (nonce: number): Promise<void> => {
        for (;;) {
          const answer = await signer.sign(ADDRESS, [transfer(nonce)], 1).catch((error: unknown) => error);
          if (!(answer instanceof SignerAway)) return void signed.add(JSON.stringify(answer));
          expect(answer.message).toMatch(/the signing process/);
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      for (let nonce = 0; nonce < 5; nonce++) await sign(nonce);
      await Promise.all([5, 6, 7, 8, 9].map(sign));
      expect(signed.size).toBe(10);
      expect(launches).toBe(count > at ? 2 : 1);
    },
  );

  it("rejects all pending requests if it is killed", async () => {
    const processes: FakeProcess[] = [];
    const signer = await start({ launch: () => remember(processes) });
    const owed = [0, 1, 2].map((nonce) => signer.sign(ADDRESS, [transfer(nonce)], 1));
    const settled = Promise.allSettled(owed);
    processes[0]?.kill();
    for (const result of await settled) {
      expect(result).toMatchObject({ status: "rejected", reason: expect.any(SignerAway) });
      expect(String((result as PromiseRejectedResult).reason)).toMatch(/ended \(SIGKILL\); another is started/);
    }
    await expect(signer.sign(ADDRESS, [transfer(0)], 1)).rejects.toBeInstanceOf(SignerAway);
    const back = () => signer.sign(ADDRESS, [transfer(0, 9n)], 1).catch(() => null);
    expect(await waitUntil(back, "another has its keys"), "its memory is lost with it").toHaveLength(1);
  });

  // protects [Signers] src/adapters/evm/signers/process/signing-process.ts
  it("is restarted after pauses that grow with each crash", async () => {
    const clock = createManualClock();
    const processes: FakeProcess[] = [];
    const signer = openHere({ beginning: BEGINNING, clock, launch: () => remember(processes) });
    open.push(await signer);
    const pauses: number[] = [];
    for (let dead = 0; dead < 5; dead++) {
      processes.at(-1)?.kill();
      await processes.at(-1)?.ended;
      const fromMs = clock.monotonicMs();
      await waitUntil(
        passing(clock, 10, () => processes.length > dead + 1),
        "another is launched",
      );
      pauses.push(clock.monotonicMs() - fromMs);
    }
    expect(pauses).toEqual([10, 100, 200, 400, 800]);
  });

  // protects [Signers] src/adapters/evm/signers/process/signing-process.ts, src/main/node/open-signing.ts
  it("is restarted after growing pauses even if the machine cannot start a process at first", async () => {
    const clock = createManualClock();
    const processes: FakeProcess[] = [];
    const launchedMs: number[] = [];
    const launch = () => {
      launchedMs.push(clock.monotonicMs());
      if (launchedMs.length === 2 || launchedMs.length === 3) throw new Error("spawn ENOMEM");
      return remember(processes);
    };
    const signer = await openHere({ beginning: BEGINNING, clock, launch });
    open.push(signer);
    processes[0]?.kill();
    await expect(
      waitUntil(
        passing(clock, 10, () => launchedMs.length === 2),
        "another is tried",
      ),
    ).resolves.toBe(true);
    await expect(signer.sign(ADDRESS, [transfer(0)], 1)).rejects.toThrow(/cannot be started: .*spawn ENOMEM/);
    const isBack = async () => {
      await clock.advance(10);
      return signer.sign(ADDRESS, [transfer(0)], 1).catch(() => null);
    };
    expect(await waitUntil(isBack, "another has its keys")).toHaveLength(1);
    const [, second, third, fourth] = launchedMs as [number, number, number, number];
    expect([third - second, fourth - third]).toEqual([100, 200]);
  });

  // protects [Signers] src/adapters/evm/signers/process/signing-process.ts
  it("is killed if it does not answer while requests are pending", async () => {
    const clock = createManualClock();
    const processes: FakeProcess[] = [];
    const signer = await openHere({ beginning: BEGINNING, clock, launch: () => remember(processes) });
    open.push(signer);
    await clock.advance(60_000);
    expect(processes, "an idle one is left alone").toHaveLength(1);
    const [process] = processes as [FakeProcess];
    process.channel.write = () => true;
    const owed = expect(signer.sign(ADDRESS, [transfer(0)], 1)).rejects.toThrow(/SIGKILL/);
    await waitUntil(
      passing(clock, 5_000, () => processes.length > 1),
      "another is launched",
    );
    await owed;
  });
});
