import { beforeEach, describe, expect, it, vi } from "vitest";
import { peerDirectory } from "../../../src/adapters/peers/directory.ts";
import type { HttpPeersOptions } from "../../../src/adapters/peers/http-peers.ts";
import { digestOf, type RequestHead, readHead, signHead } from "../../../src/adapters/peers/request-head.ts";
import { createKeyPair } from "../../../src/adapters/system/entropy.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { InstanceRecord } from "../../../src/ports/lease-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { PeerRows, type TestedPeers } from "../../support/peer-rows.ts";

const ROUTE = "/internal/v1/creates";
const BODY = JSON.stringify({ creates: [], repeat: false });
const SECRET = "a-secret-of-the-nodes-1";
const NEXT_SECRET = "a-secret-of-the-nodes-2";

let rows: PeerRows;
/** Keys of the process that sends requests, and its database row. */
let keys: ReturnType<typeof createKeyPair>;
let sender: InstanceRecord;
/** The process that receives requests, and its database row. */
let receiver: TestedPeers;
let own: InstanceRecord;

beforeEach(() => setUp());

function setUp(of: { sender?: Partial<HttpPeersOptions>; receiver?: Partial<HttpPeersOptions> } = {}): void {
  rows = new PeerRows();
  keys = createKeyPair();
  sender = rows.register(rows.peers({ keys, ...of.sender }), "http://sender");
  receiver = rows.peers(of.receiver);
  own = rows.register(receiver, "http://receiver");
  receiver.know(rows.rows);
}

/** An authorization header as the sender signs it, with some fields changed before signing. */
function signed(changes: Partial<RequestHead> = {}, { route = ROUTE, by = keys.privateKey } = {}): string {
  const head = { from: sender.instanceId, to: own.instanceId, number: 1, heartbeat: sender.counter };
  return signHead(route, { ...head, digest: digestOf(BODY), ...changes }, by);
}

/** Sends a request. Returns "in" if it was accepted, otherwise the kind of refusal that was counted. */
async function ask(authorization: string | undefined, { body = BODY, route = ROUTE } = {}): Promise<string> {
  const before = receiver.refusals().length;
  try {
    (await receiver.gate.admit(route, authorization))(Buffer.from(body));
    return "in";
  } catch (error) {
    expect(error).toBeInstanceOf(FencepostError);
    const { code, message } = error as FencepostError;
    expect({ code, message }).toEqual({
      code: "UNAUTHENTICATED",
      message: "this route is only for other nodes of the same database",
    });
    expect(receiver.refusals()).toHaveLength(before + 1);
    return receiver.refusals().at(-1) ?? "uncounted";
  }
}

describe("a signed request from another node", () => {
  it("is admitted if a live instance signed it for this instance", async () => {
    expect(await ask(signed())).toBe("in");
  });

  // protects [Attacks] src/adapters/peers/directory.ts
  it("is refused if the same request was received before", async () => {
    expect(await ask(signed())).toBe("in");
    expect(await ask(signed())).toBe("replayed");
    rows.register(receiver, "http://receiver");
    receiver.know(rows.rows);
    expect(await ask(signed()), "after this process has registered anew").toBe("replayed");
    rows.change(sender.instanceId, { url: "http://elsewhere" });
    receiver.know(rows.rows);
    expect(await ask(signed()), "after somebody has changed the sender's row").toBe("replayed");
  });

  // protects [Attacks] src/adapters/peers/directory.ts
  it("may arrive out of order, up to about eight thousand requests late", async () => {
    expect(await ask(signed({ number: 8_000 }))).toBe("in");
    expect(await ask(signed({ number: 7 }))).toBe("in");
    expect(await ask(signed({ number: 7 }))).toBe("replayed");
    expect(await ask(signed({ number: 8_000 + 8_192 }))).toBe("in");
    expect(await ask(signed({ number: 8_000 })), "too old to be told from a repeat").toBe("replayed");
    expect(await ask(signed({ number: 0 })), "no number at all").toBe("replayed");
  });

  // protects [Attacks] src/adapters/peers/gate.ts
  it("is refused if it was signed for another node", async () => {
    const other = rows.register(rows.peers(), "http://other");
    expect(await ask(signed({ to: other.instanceId }))).toBe("receiver");
  });

  // protects [Attacks] src/adapters/peers/gate.ts
  it("is refused by a new process at the same address", async () => {
    const caught = signed();
    receiver = rows.peers();
    rows.register(receiver, "http://receiver");
    expect(await ask(caught)).toBe("receiver");
  });

  it("is admitted if it names an earlier instance id of this process", async () => {
    rows.register(receiver, "http://receiver");
    receiver.know(rows.rows);
    expect(await ask(signed())).toBe("in");
  });

  it.each([
    ["its body", () => ask(signed(), { body: `${BODY} ` }), "body"],
    ["its route", () => ask(signed(), { route: "/internal/v1/actions" }), "signature"],
    ["its number", () => ask(signed().replace("number=1", "number=2")), "signature"],
    ["its heartbeat", () => ask(signed().replace("heartbeat=6", "heartbeat=7")), "signature"],
    ["its digest", () => ask(signed().replace(digestOf(BODY), digestOf("{}")), { body: "{}" }), "signature"],
    // protects [Attacks] src/adapters/peers/request-head.ts, src/adapters/http/exchange/json-body.ts
  ])("is refused if %s was altered in transit", async (_, asking, reason) => {
    expect(await asking()).toBe(reason);
  });

  // protects [Attacks] src/adapters/peers/gate.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("is refused if it names a sender that did not sign the request", async () => {
    const other = rows.register(rows.peers(), "http://other");
    expect(await ask(signed({ from: other.instanceId }))).toBe("signature");
  });

  it.each([
    ["nothing", undefined],
    ["an API key", "Bearer key"],
    ["the scheme alone", "Fencepost-Instance"],
    ["a head without a signature", () => signed().replace(/ signature=.*/, "")],
    ["a signature that is cut", () => signed().slice(0, -1)],
    ["two heads", () => `${signed()}, ${signed()}`],
  ])("is refused if its authorization is unreadable: %s", async (_, authorization) => {
    expect(await ask(typeof authorization === "function" ? authorization() : authorization)).toBe("unreadable");
  });

  // protects [Attacks] src/adapters/peers/gate.ts
  it("is refused if it is more than ten heartbeats old", async () => {
    const [caught, late] = [signed({ number: 1 }), signed({ number: 2 })];
    rows.change(sender.instanceId, { counter: sender.counter + 10 });
    receiver.know(rows.rows);
    expect(await ask(late)).toBe("in");
    rows.change(sender.instanceId, { counter: sender.counter + 11 });
    receiver.know(rows.rows);
    expect(await ask(caught)).toBe("stale");
  });

  it("is admitted if it names a newer heartbeat than the receiver has read", async () => {
    expect(await ask(signed({ heartbeat: sender.counter + 100 }))).toBe("in");
  });
});

describe("the sender of a signed request between nodes", () => {
  it("is looked up again if it is unknown", async () => {
    const readInstances = vi.fn(async () => rows.rows);
    const clock = createManualClock();
    setUp({ receiver: { readInstances, clock } });
    const newcomer = rows.peers({ keys });
    sender = rows.register(newcomer, "http://newcomer");
    expect(await ask(signed())).toBe("in");
    expect(readInstances).toHaveBeenCalledTimes(1);
    for (let n = 0; n < 100; n++) expect(await ask(signed({ from: crypto.randomUUID() }))).toBe("sender");
    expect(readInstances).toHaveBeenCalledTimes(1);
    await clock.advance(100);
    expect(await ask(signed({ from: crypto.randomUUID() }))).toBe("sender");
    expect(readInstances).toHaveBeenCalledTimes(2);
  });

  it.each([
    ["was declared dead", { dead: true }],
    ["has an expired heartbeat", { expired: true }],
    ["has no key, as in earlier releases", { publicKey: null }],
    ["has published an invalid key", { publicKey: "x" }],
    // protects [Attacks] src/adapters/peers/directory.ts
  ])("is refused if its instance %s", async (_, change) => {
    rows.change(sender.instanceId, change);
    receiver.know(rows.rows);
    expect(await ask(signed())).toBe("sender");
  });

  // protects [Attacks] src/adapters/peers/directory.ts
  it("is refused if it repeats a request number", async () => {
    expect(await ask(signed())).toBe("in");
    rows.change(sender.instanceId, { expired: true });
    receiver.know(rows.rows);
    rows.change(sender.instanceId, { expired: false });
    receiver.know(rows.rows);
    expect(await ask(signed())).toBe("replayed");
  });

  it("gets UNAVAILABLE if the list of instances cannot be read", async () => {
    setUp({ receiver: { readInstances: () => Promise.reject(new Error("ECONNREFUSED 10.0.0.1:5432")) } });
    const asking = receiver.gate.admit(ROUTE, signed({ from: crypto.randomUUID() }));
    await expect(asking).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "this node could not read the list of nodes from the database",
    });
  });

  it("is found without the database if its instance was read before", async () => {
    setUp({ receiver: { readInstances: () => Promise.reject(new Error("the database is away")) } });
    expect(await ask(signed())).toBe("in");
  });
});

describe("a secret shared by all nodes", () => {
  it("proves an instance's public key", async () => {
    setUp({ sender: { secrets: [SECRET] }, receiver: { secrets: [SECRET] } });
    expect(await ask(signed())).toBe("in");
    expect(JSON.stringify(rows.rows)).not.toContain(SECRET);
  });

  it.each([
    ["by another secret", { secrets: [NEXT_SECRET] }],
    ["by none", { secrets: [] }],
    // protects [Attacks] src/adapters/peers/directory.ts
  ])("refuses an instance whose public key is proved %s", async (_, options) => {
    setUp({ sender: options, receiver: { secrets: [SECRET] } });
    expect(await ask(signed())).toBe("secret");
  });

  // protects [Attacks] src/adapters/peers/directory.ts
  it("refuses an attacker's public key with the proof of another key", async () => {
    setUp({ sender: { secrets: [SECRET] }, receiver: { secrets: [SECRET] } });
    const forged = createKeyPair();
    const { publicKey } = rows.peers({ keys: forged }).introduce(sender.instanceId, sender.url);
    rows.change(sender.instanceId, { publicKey });
    receiver.know(rows.rows);
    expect(await ask(signed({}, { by: forged.privateKey }))).toBe("secret");
  });

  // protects [Attacks] src/adapters/peers/directory.ts
  it("prevents requests to a URL that an attacker stored in the database", async () => {
    setUp({ sender: { secrets: [SECRET] } });
    rows.change(sender.instanceId, { url: "http://attacker" });
    const peers = rows.peers({ secrets: [SECRET] });
    rows.register(peers, "http://third");
    const error = await peers.create("http://attacker", [], { repeat: false, withinMs: 100 }).catch(String);
    expect(error).toContain("not known to be a node of ours");
    expect(peers.refusals()).toEqual(["secret"]);
  });

  // protects [Attacks] src/adapters/peers/directory.ts
  it("can be rotated node by node without a refusal", async () => {
    const steps = [[SECRET], [SECRET, NEXT_SECRET], [NEXT_SECRET, SECRET], [NEXT_SECRET]];
    for (const [index, now] of steps.entries()) {
      for (const next of [now, steps[index + 1] ?? now]) {
        setUp({ sender: { secrets: now }, receiver: { secrets: next } });
        expect(await ask(signed()), `${now} asks ${next}`).toBe("in");
        setUp({ sender: { secrets: next }, receiver: { secrets: now } });
        expect(await ask(signed()), `${next} asks ${now}`).toBe("in");
      }
    }
  });
});

describe("the directory of peer nodes", () => {
  it("signs requests as the newest registered instance of this process", async () => {
    const directory = peerDirectory({
      keys,
      secrets: [],
      readInstances: async () => rows.rows,
      clock: createManualClock(),
    });
    expect(directory.self()).toBe(null);
    const first = rows.register(directory, "http://sender");
    directory.know(rows.rows);
    directory.introduce(crypto.randomUUID(), "http://sender");
    expect(directory.self()).toMatchObject({ instanceId: first.instanceId, heartbeat: first.counter });
    const second = rows.register(directory, "http://sender");
    directory.know(rows.rows);
    expect(directory.self()?.instanceId).toBe(second.instanceId);
    expect((await directory.at("http://sender"))?.instanceId, "of two in one place, the later").toBe(second.instanceId);
  });

  it("parses an authorization header to the fields that were signed", () => {
    const head = { from: sender.instanceId, to: own.instanceId, number: 12, heartbeat: 34, digest: digestOf("x") };
    expect(readHead(signHead(ROUTE, head, keys.privateKey))).toEqual({ ...head, signature: expect.any(String) });
  });
});
