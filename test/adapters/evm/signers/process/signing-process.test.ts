import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { BadKey } from "../../../../../src/adapters/evm/signers/private-keys.ts";
import type { ToSign } from "../../../../../src/domain/keys/signing.ts";
import type { Hex } from "../../../../../src/domain/lane.ts";
import { type Signer, SignerAway, SigningRefused } from "../../../../../src/ports/signer.ts";
import { addressOf, describeSignerContract } from "../../../../contracts/signer.contract.ts";
import { createManualClock, type ManualClock } from "../../../../doubles/manual-clock.ts";
import { policiesOf } from "../../../../support/policies.ts";
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
const MESSAGES = 16;

describe("a failing signing process", () => {
  it.each(Array.from({ length: MESSAGES }, (_, at) => at))(
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
