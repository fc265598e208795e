import { describe, expect, it } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";
import type { CreateRequest } from "../../../../src/application/api.ts";
import { BetweenOwners, LeaseLapsed } from "../../../../src/application/lane/between-owners.ts";
import type { OwnedLane } from "../../../../src/application/lane/owned-lane.ts";
import { happened } from "../../../../src/application/lane/tracked.ts";
import {
  answerHeldNonces,
  failureOf,
  RequestIds,
} from "../../../../src/application/stages/1-create/answer-existing.ts";
import { parseCreate } from "../../../../src/application/stages/1-create/asked-create.ts";
import { type CreatePorts, Creates } from "../../../../src/application/stages/1-create/create.ts";
import { FencepostError, otherNonce, unavailable } from "../../../../src/domain/errors.ts";
import { countCompared } from "../../../../src/domain/pace/count-events.ts";
import {
  type AskedRequests,
  BatchRefused,
  type ExistingTransaction,
  OutcomeUnknown,
  StoreUnavailable,
} from "../../../../src/ports/lane-store.ts";
import type { ForwardedCreate } from "../../../../src/ports/peers.ts";
import type { TransactionRecord } from "../../../../src/ports/query-store.ts";
import { createOwnedLane } from "../../../support/chain-bench.ts";
import { deferred } from "../../../support/deferred.ts";
import { anIntent } from "../../../support/lane-samples.ts";
import { applied, createStageBench, type StageBench } from "../../../support/stage-bench.ts";
import { CHAIN_ID, SIGNER, TO, transfer } from "../../../support/world.ts";

interface Bench extends StageBench {
  readonly createPorts: CreatePorts;
  readonly creates: Creates;
  /** Number of calls to `own`, which gets the lane. */
  owned: number;
  own: () => Promise<OwnedLane>;
}

const NO_POOLS = { choose: () => Promise.reject(new Error("nothing is for a pool here")) };

function bench(limits: { perLane?: number; perNode?: number } = {}): Bench {
  const stage = createStageBench({ cursor: 100 }, { settings: { nonceStateTimeoutMs: 1_000_000 } });
  happened(stage.lane, countCompared, { proven: 0, askedAtMs: 0, after: 0 });
  const made: Omit<Bench, "createPorts" | "creates"> = { ...stage, owned: 0, own: async () => stage.lane };
  const own = (): Promise<OwnedLane> => {
    made.owned++;
    return made.own();
  };
  const createPorts: CreatePorts = {
    ...stage.ports,
    store: {
      ...stage.ports.store,
      transaction: async () => null,
      transactionAt: async () => null,
      openOf: async () => [],
    },
    intents: { codec: createCodec(), entropy: stage.ports.entropy, chainIds: [CHAIN_ID] },
    requestIds: new RequestIds(stage.ports.store, stage.clock),
    lanes: { own },
    router: { deliver: ({ items, here }) => here([...Array(items).keys()], false) },
    reception: { turnedAway: () => null, counted: (creates) => creates },
    pendingCreates: { enqueue: () => Promise.reject(new Error("nothing is enqueued here")) },
    forwardCreates: { send: () => Promise.reject(new Error("nothing is forwarded here")) },
    admission: { perLane: limits.perLane ?? 100, perNode: limits.perNode ?? 400, underWay: 0 },
  };
  return Object.assign(made, { createPorts, creates: new Creates(createPorts, NO_POOLS) });
}

function create(creates: Creates, requests: readonly CreateRequest[]) {
  return creates.create(requests.map((request) => ({ request })));
}

async function createOne(creates: Creates, request: CreateRequest) {
  const [result] = await create(creates, [request]);
  if (result instanceof FencepostError) throw result;
  return result;
}

async function ask(made: Bench, ...requests: readonly CreateRequest[]) {
  const work = create(made.creates, requests);
  await made.clock.advance(1_000);
  return work;
}

function labels(made: Bench): readonly string[] {
  return made.telemetry.of("create.answered").map(({ result }) => result);
}

function idsOf(asked: readonly AskedRequests[]): readonly string[] {
  return asked.flatMap(({ requestIds }) => requestIds);
}

function existing(requestId: string, fingerprint: `0x${string}`): ExistingTransaction {
  return {
    txId: "the first",
    lane: { chainId: CHAIN_ID, signer: SIGNER },
    requestId,
    owner: null,
    nonce: 7,
    state: "TRACKING",
    fingerprint,
  };
}

describe("results of a batch of creates", () => {
  it("are returned in the order of the requests", async () => {
    const made = bench();
    const results = await ask(made, transfer(), { signer: "nobody" }, transfer({ requestId: null }), transfer());
    expect(results).toMatchObject([
      { nonce: 100 },
      { code: "INVALID_REQUEST" },
      { nonce: 101, requestId: null },
      { nonce: 102 },
    ]);
    expect(labels(made)).toEqual(["created", "invalid", "created", "created"]);
    expect(made.lane.creating).toBe(0);
    expect(made.createPorts.admission.underWay).toBe(0);
  });

  it("are an empty list for an empty batch", async () => {
    expect(await ask(bench())).toEqual([]);
  });

  it("are the acquisition error for every request, if the lane cannot be acquired", async () => {
    const made = bench();
    made.own = () => Promise.reject(new FencepostError("NOT_LEADER", "ask node 2", { ownerUrl: "http://2" }));
    expect(await ask(made, transfer(), transfer())).toMatchObject([{ code: "NOT_LEADER" }, { code: "NOT_LEADER" }]);
    made.own = () => Promise.reject(unavailable("away"));
    await ask(made, transfer());
    made.own = () => Promise.reject(new FencepostError("UNKNOWN_SIGNER", "who?"));
    await ask(made, transfer());
    expect(labels(made)).toEqual(["notLeader", "notLeader", "unavailable", "rejected"]);
  });

  // protects [Attacks] src/application/stages/1-create/create.ts, src/application/writer/committer.ts
  it("report a request that the database cannot store", async () => {
    const made = bench();
    made.control.answer = () => ({
      status: "allocated",
      items: [{ result: "noCursor" }, { result: "held" }, { result: "refused", detail: "too long" }],
      cursor: 0,
    });
    expect(await ask(made, transfer(), transfer(), transfer())).toMatchObject([
      { code: "UNAVAILABLE" },
      { code: "UNAVAILABLE", message: expect.stringMatching(/history changed.*operator.*nothing was accepted/) },
      { code: "INVALID_REQUEST", message: "the database cannot store this request; the node's log says why" },
    ]);
  });

  it("name the transaction to look up if the outcome of the commit is unknown", async () => {
    const made = bench();
    made.control.answer = () => new OutcomeUnknown("the connection died");
    const [answer] = await ask(made, transfer());
    expect(answer).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown", txId: expect.any(String) } });
    expect(labels(made)).toEqual(["unknown"]);
  });

  it("do not hide an internal error as a mistake of the caller", async () => {
    const made = bench();
    const codec = {
      ...createCodec(),
      parseAddress: () => {
        throw new RangeError("oh");
      },
    };
    const ports = { ...made.createPorts, intents: { ...made.createPorts.intents, codec } };
    await expect(create(new Creates(ports, NO_POOLS), [transfer()])).rejects.toThrow(RangeError);
  });
});

describe("a create with an existing request id", () => {
  it("returns the existing transaction before any request to the chain", async () => {
    const made = bench();
    const [first] = await ask(made, transfer({ requestId: "r" }));
    const print = made.writes[0]?.kind === "allocate" ? made.writes[0].items[0]?.intent.fingerprint : undefined;
    made.rows.existing = [existing("r", print as `0x${string}`)];
    made.faults.inject({ kind: "unavailable" });
    const [again, reused] = await ask(
      made,
      transfer({ requestId: "r" }),
      transfer({ requestId: "r", payload: { to: TO, value: 9 } }),
    );
    expect(first).toMatchObject({ outcome: "created" });
    expect(again).toMatchObject({ outcome: "existing", txId: "the first", nonce: 7, state: "TRACKING" });
    expect(reused).toMatchObject({ code: "REQUEST_ID_REUSED", extras: { txId: "the first" } });
    expect(made.writes.length).toBe(1);
    expect(labels(made)).toEqual(["created", "duplicate", "reused"]);
  });

  it("is recognised as a repeat at nonce allocation at the latest", async () => {
    const made = bench();
    const duplicate = { result: "duplicate", existing: existing("r", "0x"), samePayload: true } as const;
    made.control.answer = () => ({ status: "allocated", items: [duplicate], cursor: 8 });
    expect(await ask(made, transfer({ requestId: "r" }))).toMatchObject([{ outcome: "existing", nonce: 7 }]);
  });

  it("fails with REQUEST_ID_REUSED even if the call would revert", async () => {
    const made = bench();
    made.simulated.revertCallsTo(TO, "0x");
    let looks = 0;
    Object.assign(made.ports.store, {
      findByRequestIds: async (asked: readonly AskedRequests[]) =>
        ++looks === 1 ? [] : idsOf(asked).map((id) => existing(id, "0x")),
    });
    expect(await ask(made, transfer({ requestId: "r" }))).toMatchObject([{ code: "REQUEST_ID_REUSED" }]);
    expect(looks).toBe(2);
  });

  it("is recognised in the commit if the request id was not looked up before", async () => {
    const made = bench();
    const looks: (readonly string[])[] = [];
    const gate = deferred<readonly ExistingTransaction[]>();
    Object.assign(made.ports.store, {
      findByRequestIds: (asked: readonly AskedRequests[]) => {
        looks.push(idsOf(asked));
        return gate.promise;
      },
    });
    const withGas = (requestId: string) => transfer({ requestId, payload: { to: TO, value: 1, gas: 60_000 } });
    // The lane has no unmined transaction before the first create. So the create's request id is looked up, and the
    // create is simulated. The second create arrives meanwhile.
    const first = create(made.creates, [withGas("a")]);
    const second = create(made.creates, [withGas("b")]);
    await made.clock.advance(100);
    expect(made.writes).toEqual([]);
    gate.resolve([]);
    await made.clock.advance(1_000);
    expect([...(await first), ...(await second)]).toMatchObject([{ outcome: "created" }, { outcome: "created" }]);
    const items = made.writes.flatMap((write) => (write.kind === "allocate" ? write.items : []));
    expect(items.map(({ intent }) => intent.requestId)).toEqual(["a", "b"]);
    expect(looks).toEqual([["a", "b"]]);
    // From here on, the lane always has an unmined transaction before a create. So no look-up is made; a repeated
    // request is found in the commit itself, under the lane's lock.
    const duplicate = { result: "duplicate", existing: existing("a", "0x"), samePayload: true } as const;
    made.control.answer = () => ({ status: "allocated", items: [duplicate], cursor: 102 });
    expect(await ask(made, withGas("a"))).toMatchObject([{ outcome: "existing", txId: "the first" }]);
    expect(looks.length).toBe(1);
  });

  it("fails with 503 if the request id cannot be looked up", async () => {
    const made = bench();
    Object.assign(made.ports.store, { findByRequestIds: () => Promise.reject(new StoreUnavailable("away")) });
    expect(await ask(made, transfer({ requestId: "r" }))).toMatchObject([{ code: "UNAVAILABLE" }]);
    expect(made.writes).toEqual([]);
  });
});

describe("waiting creates whose lane is lost", () => {
  it("are retried after the node has acquired the lane again", async () => {
    const made = bench();
    const again = createOwnedLane({ cursor: 100 }, made.context, made.ports);
    made.own = async () => (made.owned === 1 ? made.lane : again);
    let writes = 0;
    made.control.answer = (write) => (++writes === 1 ? { status: "fenced" } : applied(write));
    expect(await ask(made, transfer())).toMatchObject([{ outcome: "created" }]);
    expect(made.owned).toBe(2);
    expect(again.toSign(64, 10).length).toBe(1);
  });

  it("are refused with NOT_LEADER if the lane is lost twice", async () => {
    const made = bench();
    made.own = async () => createOwnedLane({ cursor: 100 }, made.context, made.ports);
    made.control.answer = () => ({ status: "fenced" });
    expect(await ask(made, transfer())).toMatchObject([{ code: "NOT_LEADER", extras: { ownerUrl: null } }]);
    expect(made.writes.length).toBe(2);
  });

  // protects [Operators] src/application/lane/between-owners.ts, src/application/lane/term.ts
  it("fail with 503 if no other node owns the lane", async () => {
    const reading = bench();
    reading.own = async () => {
      const lane = createOwnedLane({ cursor: 100 }, reading.context, reading.ports);
      lane.stop("putOff");
      return lane;
    };
    const [put] = await ask(reading, transfer());
    expect(put).toBeInstanceOf(BetweenOwners);
    const lapsed = bench();
    lapsed.control.mayAct = false;
    const [late] = await ask(lapsed, transfer());
    expect(late).toBeInstanceOf(LeaseLapsed);
  });

  // protects [Many lanes] src/application/stages/1-create/create.ts
  it("still count against the queue limits after the lane is acquired again", async () => {
    const made = bench({ perLane: 2 });
    const again = createOwnedLane({ cursor: 100 }, made.context, made.ports);
    made.own = async () => (made.owned === 1 ? made.lane : again);
    const under: number[][] = [];
    made.control.answer = (write) => {
      under.push([made.lane.creating, again.creating]);
      return under.length === 1 ? { status: "fenced" } : applied(write);
    };
    expect(await ask(made, transfer(), transfer())).toMatchObject([{ nonce: 100 }, { nonce: 101 }]);
    expect(under.map(([, next]) => next)).toEqual([0, 2]);
    expect([made.lane.creating, again.creating, made.createPorts.admission.underWay]).toEqual([0, 0, 0]);
  });

  it.each(["lost", "putOff"] as const)(
    // protects [The fence] src/application/lane/term.ts, src/application/stages/1-create/create.ts
    "still get their result if the commit succeeded (%s)",
    async (how) => {
      const made = bench();
      made.control.meanwhile = () => made.lane.stop(how);
      expect(await ask(made, transfer())).toMatchObject([{ outcome: "created", nonce: 100 }]);
      expect([made.owned, made.writes.length]).toEqual([1, 1]);
    },
  );

  // protects [The fence] src/application/lane/term.ts, src/application/stages/1-create/create.ts
  it("have an unknown outcome if the commit got no response", async () => {
    const made = bench();
    made.control.meanwhile = () => made.lane.stop("lost");
    made.control.answer = () => new OutcomeUnknown("the connection broke");
    expect(await ask(made, transfer())).toMatchObject([{ code: "UNAVAILABLE", extras: { outcome: "unknown" } }]);
    expect(made.writes.length).toBe(1);
  });

  it("are refused with the URL of the new owner", async () => {
    const made = bench();
    made.own = async () => {
      if (made.owned > 1) throw new FencepostError("NOT_LEADER", "node 2", { ownerUrl: "http://2" });
      return made.lane;
    };
    made.control.answer = () => ({ status: "fenced" });
    expect(await ask(made, transfer())).toMatchObject([{ code: "NOT_LEADER", extras: { ownerUrl: "http://2" } }]);
  });
});

describe("the queue of creates", () => {
  it("refuses creates above the limit of a lane with QUEUE_FULL", async () => {
    const made = bench({ perLane: 2 });
    const results = await ask(made, transfer(), transfer(), transfer());
    expect(results).toMatchObject([
      { nonce: 100 },
      { nonce: 101 },
      { code: "QUEUE_FULL", extras: { retryAfterSeconds: 1 } },
    ]);
    expect(labels(made)).toEqual(["created", "created", "queueFull"]);
    expect(await ask(made, transfer())).toMatchObject([{ outcome: "created" }]);
  });

  it("counts the creates of other callers in progress against a lane's limit", async () => {
    const made = bench({ perLane: 3 });
    made.lane.count("creating", 2);
    expect(await ask(made, transfer(), transfer())).toMatchObject([{ nonce: 100 }, { code: "QUEUE_FULL" }]);
    made.lane.count("creating", 3);
    expect(await ask(made, transfer())).toMatchObject([{ code: "QUEUE_FULL" }]);
  });

  it("counts the creates of all lanes against the node's limit", async () => {
    const made = bench({ perNode: 3 });
    made.createPorts.admission.underWay = 2;
    expect(await ask(made, transfer(), transfer())).toMatchObject([{ nonce: 100 }, { code: "QUEUE_FULL" }]);
    expect(made.createPorts.admission.underWay).toBe(2);
  });

  it("has space again after creates have failed", async () => {
    const made = bench();
    made.control.answer = () => new StoreUnavailable("away");
    expect(await ask(made, transfer(), transfer())).toMatchObject([{ code: "UNAVAILABLE" }, { code: "UNAVAILABLE" }]);
    expect([made.lane.creating, made.createPorts.admission.underWay]).toEqual([0, 0]);
  });
});

describe("a create without sufficient funds", () => {
  const broke = { to: TO, value: "1", gas: 21_000, gasPrice: "2000000000" };

  it("is accepted behind another create of the same batch", async () => {
    const made = bench();
    made.simulated.setBalance(SIGNER, 0n);
    expect(await ask(made, transfer({ payload: broke }), transfer({ payload: broke }))).toMatchObject([
      { code: "SUBMISSION_REJECTED" },
      { outcome: "created" },
    ]);
  });

  it("is accepted while other creates of the lane are in progress", async () => {
    const made = bench();
    made.simulated.setBalance(SIGNER, 0n);
    made.lane.count("creating", 1);
    expect(await ask(made, transfer({ payload: broke }))).toMatchObject([{ outcome: "created" }]);
  });
});

describe("single creates that arrive together", () => {
  const priced = (fields: object = {}) => {
    const fees = { gas: 21_000, maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" };
    return transfer({ payload: { to: SIGNER, value: "1", ...fees, ...fields } });
  };

  async function askSingly(made: Bench, ...requests: readonly CreateRequest[]) {
    const answers = Promise.allSettled(requests.map((request) => createOne(made.creates, request)));
    await made.clock.advance(1_000);
    return answers;
  }

  it("acquire the lane once, and each gets its own result", async () => {
    const made = bench({ perLane: 2 });
    const answers = await askSingly(made, priced(), priced({ value: "-1" }), priced(), priced());
    expect(answers).toMatchObject([
      { value: { outcome: "created", nonce: 100 } },
      { reason: { code: "INVALID_REQUEST" } },
      { value: { outcome: "created", nonce: 101 } },
      { reason: { code: "QUEUE_FULL" } },
    ]);
    expect(made.owned).toBe(1);
    expect([...labels(made)].sort()).toEqual(["created", "created", "invalid", "queueFull"]);
  });

  it("do not wait for a create that needs an RPC response", async () => {
    const made = bench();
    const hanging = new Promise<never>(() => undefined);
    made.context.marketFor = () => hanging;
    const slow = createOne(made.creates, transfer({ payload: { to: SIGNER, value: "1" } }));
    const [quick] = await askSingly(made, priced());
    expect(quick).toMatchObject({ status: "fulfilled" });
    expect(await Promise.race([slow.then(() => "slow"), made.clock.advance(1_000).then(() => "still open")])).toBe(
      "still open",
    );
  });

  it("all fail if an internal error occurs in their shared batch", async () => {
    const made = bench();
    const router = { deliver: () => Promise.reject(new RangeError("oh")) };
    const creates = new Creates({ ...made.createPorts, router }, NO_POOLS);
    const answers = Promise.allSettled([createOne(creates, priced()), createOne(creates, priced())]);
    await made.clock.advance(10);
    expect((await answers).map((answer) => (answer as PromiseRejectedResult).reason)).toEqual([
      new RangeError("oh"),
      new RangeError("oh"),
    ]);
  });
});

describe("a create that is queued for an owner without a URL", () => {
  it("fails with 503 if its request id cannot be looked up", async () => {
    const made = bench();
    made.createPorts.requestIds.find = () => Promise.reject(new StoreUnavailable("away"));
    const router: CreatePorts["router"] = { deliver: ({ enqueue }) => enqueue([0]) };
    const work = create(new Creates({ ...made.createPorts, router }, NO_POOLS), [transfer({ requestId: "named" })]);
    await made.clock.advance(10);
    const [result] = await work;
    expect(result).toMatchObject({ code: "UNAVAILABLE" });
    expect((result as FencepostError).extras.outcome).toBeUndefined();
  });
});

describe("the answer to a create", () => {
  it("is created if an earlier send of the same request made it", async () => {
    const made = bench();
    made.control.answer = (write) => {
      const { txId } = (write as Extract<typeof write, { kind: "allocate" }>).items[0]?.intent ?? { txId: "" };
      const duplicate = {
        result: "duplicate",
        existing: { ...existing("r", "0x1"), txId },
        samePayload: true,
      } as const;
      return { status: "allocated", items: [duplicate], cursor: 101 };
    };
    expect(await ask(made, transfer())).toMatchObject([{ outcome: "created", nonce: 7 }]);
  });

  it("stays created if another of its batch cannot be answered", async () => {
    const made = bench();
    let looks = 0;
    made.createPorts.requestIds.find = () =>
      looks++ === 0 ? Promise.resolve(new Map()) : Promise.reject(new StoreUnavailable("away"));
    const asked = { request: transfer(), owner: "shop", queueShare: 0.001 };
    const work = made.creates.create([asked, { ...asked, request: transfer() }]);
    await made.clock.advance(1_000);
    expect(await work).toMatchObject([{ outcome: "created", nonce: 100 }, { code: "QUOTA_EXCEEDED" }]);
  });

  it("takes no place in its API key's share if it names another transaction", async () => {
    const made = bench({ perLane: 1 });
    const askAgain = async () => {
      const work = made.creates.create([{ request: transfer(), owner: "shop", queueShare: 1 }]);
      await made.clock.advance(1_000);
      return work;
    };
    const duplicate = { result: "duplicate", existing: existing("r", "0x1"), samePayload: true } as const;
    made.control.answer = () => ({ status: "allocated", items: [duplicate], cursor: 101 });
    expect(await askAgain()).toMatchObject([{ outcome: "existing", txId: "the first" }]);
    made.control.answer = applied;
    expect(await askAgain()).toMatchObject([{ outcome: "created" }]);
  });

  it("shows no transaction of another API key at the nonce that it names", async () => {
    const intent = { ...anIntent({ chainId: CHAIN_ID, signer: SIGNER }), owner: "other", exactNonce: 3 };
    const found = { ...intent, owner: "shop", txId: "the first", nonce: 3, state: "TRACKING" };
    const held = async (owner: string) => {
      const item = { intent: { ...intent, owner }, result: otherNonce(3, 5) };
      await answerHeldNonces({ store: { transactionAt: async () => found as unknown as TransactionRecord } }, [item]);
      return item.result as unknown;
    };
    expect(await held("shop")).toMatchObject({ outcome: "existing", txId: "the first" });
    expect(await held("other")).toMatchObject({ code: "CONFLICT", extras: { nextNonce: 5 } });
  });

  it("has no answer at the nonce that it names while the database is away", async () => {
    const intent = { ...anIntent({ chainId: CHAIN_ID, signer: SIGNER }), exactNonce: 3 };
    const item = { intent, result: otherNonce(3, 5) };
    await answerHeldNonces({ store: { transactionAt: () => Promise.reject(new StoreUnavailable("away")) } }, [item]);
    expect(item.result).toMatchObject({ code: "UNAVAILABLE" });
  });

  it("refuses for good what the database refuses, and nothing else", () => {
    expect(failureOf(new BatchRefused("too long"), "tx")).toMatchObject({ code: "INVALID_REQUEST" });
    expect(failureOf(new StoreUnavailable("away"), "tx")).toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("a create that is forwarded", () => {
  it("names its chain, which may be one of several at the other node", async () => {
    const made = bench();
    const sent: ForwardedCreate[] = [];
    const router: CreatePorts["router"] = {
      deliver: ({ at }) => at("http://2", [0], { repeat: false, withinMs: 1_000 }),
    };
    const forwardCreates: CreatePorts["forwardCreates"] = {
      send: async (_, creates) => {
        sent.push(...creates);
        return creates.map(() => unavailable("away"));
      },
    };
    const { chainId: _, ...request } = transfer();
    const work = create(new Creates({ ...made.createPorts, router, forwardCreates }, NO_POOLS), [request]);
    await made.clock.advance(10);
    await work;
    expect(sent).toMatchObject([{ request: { chainId: CHAIN_ID } }]);
  });

  it("keeps the signer that the other node chose from the pool", () => {
    const { intents } = bench().createPorts;
    const request = transfer({ signer: { pool: "payouts" } });
    const asked = { request, txId: "0b0e7a2e-9c1d-4b7e-8d43-0a9f5a4f2a11", owner: null, chosen: SIGNER };
    const parsed = parseCreate(intents, asked, { repeat: false });
    expect(parsed).toMatchObject({ pool: null, intent: { lane: { signer: SIGNER } } });
  });
});
