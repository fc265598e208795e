import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { createHttpServer } from "../../../src/adapters/http/server.ts";
import { createHttpPeers } from "../../../src/adapters/peers/http-peers.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { createKeyPair, systemSecrets } from "../../../src/adapters/system/entropy.ts";
import { FencepostNode } from "../../../src/application/loops/node.ts";
import type { Address } from "../../../src/domain/lane.ts";
import type { ForwardedCreate } from "../../../src/ports/peers.ts";
import { noWakeUps } from "../../../src/ports/wake-ups.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { MemoryDatabase } from "../../doubles/memory-store.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { DirectChain } from "../../doubles/simulated-chain/chain-port.ts";
import { SimulatedChain } from "../../doubles/simulated-chain/core.ts";
import { ROOMY_POOL } from "../../doubles/simulated-chain/pool.ts";
import { senderFromFakeSignature } from "../../doubles/simulated-chain/sender.ts";
import { httpOptions } from "../../support/http-app.ts";
import { anInstance } from "../../support/lane-samples.ts";
import { noSessionLock } from "../../support/no-session-lock.ts";
import { CHAIN_ID, CHAIN_SETTINGS, NODE_SETTINGS, transfer } from "../../support/world.ts";

/**
 * Tests two nodes behind real servers that disagree about the owner of a lane: each node reads from its database that
 * the other one is the owner.
 */

const SIGNERS = Array.from({ length: 8 }, (_, n) => `0x${(n + 1).toString(16).padStart(40, "d")}` as Address);
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

class Wire {
  readonly sent: string[] = [];
  readonly received: string[] = [];

  note(list: "sent" | "received", creates: readonly ForwardedCreate[]): void {
    this[list].push(...creates.map(({ request }) => String(request.requestId)));
  }
}

async function startNode(name: string, database: MemoryDatabase, chain: SimulatedChain) {
  const wire = new Wire();
  const store = database.connect();
  const http = createHttpPeers({
    keys: createKeyPair(),
    secrets: ["a secret of more than 22 characters"],
    urlPatterns: ["http://127.0.0.1:*"],
    readInstances: () => store.instances(),
    clock: systemClock,
    telemetry: { emit: () => undefined },
  });
  let node: FencepostNode | null = null;
  const server = createHttpServer(
    httpOptions(
      {},
      {
        clock: systemClock,
        peer: {
          admit: (...request) => http.gate.admit(...request),
          create: (creates, repeat) => {
            wire.note("received", creates);
            return (node as FencepostNode).create(creates, { repeat });
          },
          act: (lane, request) => (node as FencepostNode).actions.receive(lane, request),
          kill: async (kill) => (node as FencepostNode).kills.receive(kill),
        },
      },
    ),
  );
  const { url } = await server.listen("127.0.0.1", 0);
  const peers = {
    introduce: http.introduce.bind(http),
    know: http.know.bind(http),
    create: (...call: Parameters<typeof http.create>) => {
      wire.note("sent", call[1]);
      return http.create(...call);
    },
    act: http.act.bind(http),
    kill: http.kill.bind(http),
    close: () => http.close(),
  };
  node = new FencepostNode(
    {
      store,
      chains: [{ chain: new DirectChain(chain), settings: CHAIN_SETTINGS }],
      signer: new FakeSigner(SIGNERS),
      peers,
      wakeUps: noWakeUps,
      sessionLock: noSessionLock,
      codec: createCodec(),
      clock: systemClock,
      secrets: systemSecrets,
      entropy: createSeededEntropy(name.charCodeAt(0), systemClock),
      telemetry: { emit: () => undefined },
      failpoint: () => undefined,
    },
    { ...NODE_SETTINGS, nodeId: name, url },
  );
  const started = node;
  closers.push(() => server.close(0));
  closers.push(() => http.close());
  closers.push(() => started.abandon());
  return { node: started, url, wire };
}

describe("two nodes that forward to each other", () => {
  it("never forward a forwarded request", async () => {
    const database = new MemoryDatabase(systemClock);
    const store = database.connect();
    const chain = new SimulatedChain({ chainId: CHAIN_ID, recoverSender: senderFromFakeSignature, pool: ROOMY_POOL });
    chain.mine(3);
    const a = await startNode("a", database, chain);
    const b = await startNode("b", database, chain);
    const ghosts = [a.url, b.url].map((url) => anInstance({ instanceId: randomUUID(), url }));
    for (const [index, ghost] of ghosts.entries()) {
      await store.registerInstance(ghost);
      for (const signer of SIGNERS.slice(4 * index, 4 * index + 4)) {
        await store.acquireLane({ chainId: CHAIN_ID, signer }, ghost.instanceId);
      }
    }
    await a.node.start();
    await b.node.start();

    const creates = SIGNERS.flatMap((signer) => [
      a.node.api.create(transfer({ signer, requestId: `heard by a for ${signer}` })),
      b.node.api.create(transfer({ signer, requestId: `heard by b for ${signer}` })),
    ]);
    const release = (async () => {
      // Wait until every create has been forwarded at least once.
      while (new Set([...a.wire.received, ...b.wire.received]).size < 8) await new Promise(setImmediate);
      for (const { instanceId } of ghosts) await store.retireInstance(instanceId);
    })();
    const answers = await Promise.all(creates);
    await release;

    expect(answers.map(({ outcome }) => outcome)).toEqual(answers.map(() => "created"));
    const own = (name: string) => (requestId: string) => requestId.startsWith(`heard by ${name} `);
    expect(a.wire.sent.every(own("a"))).toBe(true);
    expect(b.wire.sent.every(own("b"))).toBe(true);
    expect(a.wire.received.every(own("b"))).toBe(true);
    expect(b.wire.received.every(own("a"))).toBe(true);
    expect([...a.wire.received].sort()).toEqual([...b.wire.sent].sort());
    expect([...b.wire.received].sort()).toEqual([...a.wire.sent].sort());
    for (const signer of SIGNERS) {
      const rows = [...database.state.transactions.values()].filter(({ lane }) => lane.signer === signer);
      expect(rows.map(({ nonce }) => nonce).sort()).toEqual([0, 1]);
    }
  });
});
