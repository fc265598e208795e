import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Kill } from "../../src/domain/cluster/kills.ts";
import { FencepostError } from "../../src/domain/errors.ts";
import type { Lane } from "../../src/domain/lane.ts";
import {
  type ForwardedAnswer,
  type ForwardedCreate,
  type LaneAnswer,
  type LaneRequest,
  type Peers,
  PeerUnreachable,
  type Sending,
} from "../../src/ports/peers.ts";

export const ONCE: Sending = { repeat: false, withinMs: 5_000 };
export const AGAIN: Sending = { repeat: true, withinMs: 5_000 };

export type Receive = (
  creates: readonly ForwardedCreate[],
  repeat: boolean,
) => Promise<readonly (ForwardedAnswer | FencepostError)[]>;

export type Act = (lane: Lane, request: LaneRequest) => Promise<LaneAnswer | FencepostError>;

export interface PeersSubject {
  readonly peers: Peers;
  /** Starts another node with scripted responses. */
  startNode(receive: Receive, act?: Act, kill?: (kill: Kill) => void): Promise<PeerNode>;
  close(): Promise<void>;
}

export interface PeerNode {
  readonly url: string;
  /** The node performs the next request, but its response is lost. */
  loseNextReply(): void;
  stop(): Promise<void>;
}

export function aForwarded(n: number, request: Readonly<Record<string, unknown>> = {}): ForwardedCreate {
  return {
    txId: `019a4b7e-0000-7000-8000-${n.toString(16).padStart(12, "0")}`,
    owner: n % 2 === 0 ? null : `shop-${n}`,
    ...(n % 3 === 0 ? {} : { queueShare: 0.25 }),
    ...(n % 4 === 0 ? { chosen: `0x${n.toString(16).padStart(40, "0")}` as const } : {}),
    request,
  };
}

export function anAnswer({ txId }: ForwardedCreate, overrides: Partial<ForwardedAnswer> = {}): ForwardedAnswer {
  return {
    outcome: "created",
    txId,
    lane: { chainId: 31_337, signer: `0x${"ab".repeat(20)}` },
    requestId: null,
    nonce: 7,
    state: "ALLOCATED",
    ...overrides,
  };
}

export async function unreachable(call: Promise<unknown>): Promise<PeerUnreachable> {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(PeerUnreachable);
  return error as PeerUnreachable;
}

/**
 * The contract of every connection between nodes: requests arrive unchanged, each gets one response, and if a response
 * is missing, the sender gets an error that says so.
 */
export function peersContract(name: string, create: () => Promise<PeersSubject>): void {
  describe(`Peers contract: ${name}`, () => {
    const received: { creates: readonly ForwardedCreate[]; repeat: boolean }[] = [];
    let subject: PeersSubject;
    beforeEach(async () => {
      received.length = 0;
      subject = await create();
    });
    afterEach(() => subject.close());

    const answering: Receive = async (creates, repeat) => {
      received.push({ creates, repeat });
      return creates.map((each) => anAnswer(each));
    };

    it("forwards creates unchanged, with a mark if they are forwarded again", async () => {
      const { url } = await subject.startNode(answering);
      const request = {
        chainId: 31_337,
        signer: "0xAbCd",
        requestId: 'naïve 🦄 "quoted"',
        payload: { to: null, args: [1, "2", { deep: [true, null] }], value: "0x10" },
      };
      const creates = [aForwarded(1, request), aForwarded(2, { metadata: { empty: {} } })];
      await subject.peers.create(url, creates, ONCE);
      await subject.peers.create(url, creates, AGAIN);
      expect(received).toEqual([
        { creates, repeat: false },
        { creates, repeat: true },
      ]);
    });

    it("writes bigints as decimal digits", async () => {
      const { url } = await subject.startNode(answering);
      await subject.peers.create(url, [aForwarded(1, { payload: { value: 2n ** 200n, args: [[-1n]] } })], ONCE);
      expect(received[0]?.creates[0]?.request).toEqual({ payload: { value: (2n ** 200n).toString(), args: [["-1"]] } });
    });

    it("returns one result for each create, in order", async () => {
      const results = [
        anAnswer(aForwarded(1), { nonce: null, state: "CREATED", requestId: "r-1" }),
        new FencepostError("REQUEST_ID_REUSED", "the id belongs to another payload", { txId: aForwarded(9).txId }),
        anAnswer(aForwarded(8), { outcome: "existing", state: "CONFIRMED" }),
        new FencepostError("NOT_LEADER", "ask there", { ownerUrl: "http://node-c:3000", retryAfterSeconds: 1 }),
        new FencepostError("NOT_LEADER", "ask elsewhere", { ownerUrl: null }),
        new FencepostError("SUBMISSION_REJECTED", "it reverts", {
          reason: "REVERT",
          revert: { name: "Nope", message: null, data: "0x01" },
          dependsOnPending: true,
        }),
        new FencepostError("UNAVAILABLE", "nobody knows", { txId: aForwarded(7).txId, outcome: "unknown" }),
      ];
      const { url } = await subject.startNode(async () => results);
      const answers = await subject.peers.create(
        url,
        results.map((_, index) => aForwarded(index)),
        ONCE,
      );
      expect(answers.map(plain)).toEqual(results.map(plain));
      for (const [index, result] of results.entries()) {
        expect(answers[index] instanceof FencepostError).toBe(result instanceof FencepostError);
      }
    });

    it("keeps the results of concurrent calls separate", async () => {
      const { url } = await subject.startNode(answering);
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, n) => subject.peers.create(url, [aForwarded(n)], ONCE)),
      );
      expect(answers.map(([first]) => (first as ForwardedAnswer).txId)).toEqual(
        Array.from({ length: 100 }, (_, n) => aForwarded(n).txId),
      );
    });

    it("reports neverSent for a node that has stopped", async () => {
      const node = await subject.startNode(answering);
      await subject.peers.create(node.url, [aForwarded(1)], ONCE);
      await node.stop();
      expect((await unreachable(subject.peers.create(node.url, [aForwarded(2)], ONCE))).neverSent).toBe(true);
      expect(received).toHaveLength(1);
    });

    it("reports neverSent for a node without a URL", async () => {
      expect((await unreachable(subject.peers.create("", [aForwarded(1)], ONCE))).neverSent).toBe(true);
    });

    it("forwards an action to the lane's owner", async () => {
      const asked: unknown[] = [];
      const answers: (LaneAnswer | FencepostError)[] = [
        { answer: { txId: "7", list: [1, null] } },
        { answer: null },
        new FencepostError("CONFLICT", "it is final"),
        new FencepostError("NOT_LEADER", "ask there", { ownerUrl: "http://node-c:3000", retryAfterSeconds: 1 }),
      ];
      const { url } = await subject.startNode(answering, async (lane, request) => {
        asked.push({ lane, request });
        return answers[asked.length - 1] as LaneAnswer;
      });
      const lane: Lane = { chainId: 5, signer: `0x${"ab".repeat(20)}` };
      const request = { action: "cancel", body: { txId: "7", fees: { maxFeePerGas: "1" } }, owner: "ops" };
      for (const expected of answers) {
        const answer = await subject.peers.act(url, lane, { ...request, withinMs: 5_000 });
        expect(plain(answer)).toEqual(plain(expected));
      }
      expect(asked).toEqual(answers.map(() => ({ lane, request })));
    });

    it("forwards a kill, and treats a missing response as a failure", async () => {
      const receivedKills: Kill[] = [];
      const node = await subject.startNode(answering, undefined, (kill) => void receivedKills.push(kill));
      const kill: Kill = {
        killId: aForwarded(1).txId,
        signer: `0x${"ab".repeat(20)}`,
        actor: "operator:a",
        reason: 'naïve 🦄 "quoted"',
      };
      const kills = [kill, { ...kill, signer: null }];
      for (const each of kills) await subject.peers.kill(node.url, each, 5_000);
      expect(receivedKills).toEqual(kills);
      await node.stop();
      await unreachable(subject.peers.kill(node.url, kill, 5_000));
    });

    it("reports neverSent for a forwarded action only if nothing was sent", async () => {
      const node = await subject.startNode(answering, () => new Promise(() => undefined));
      const lane: Lane = { chainId: 5, signer: `0x${"ab".repeat(20)}` };
      const ask = () => subject.peers.act(node.url, lane, { action: "cancel", body: {}, owner: null, withinMs: 30 });
      expect((await unreachable(ask())).neverSent).toBe(false);
      await node.stop();
      expect((await unreachable(ask())).neverSent).toBe(true);
    });

    it("gives up after the given time, and does not report neverSent", async () => {
      const { url } = await subject.startNode(() => new Promise(() => undefined));
      const call = subject.peers.create(url, [aForwarded(1)], { repeat: false, withinMs: 30 });
      expect((await unreachable(call)).neverSent).toBe(false);
    });

    it("does not report neverSent if a response is lost", async () => {
      const node = await subject.startNode(answering);
      node.loseNextReply();
      expect((await unreachable(subject.peers.create(node.url, [aForwarded(1)], ONCE))).neverSent).toBe(false);
      expect(received).toHaveLength(1);
      expect(await subject.peers.create(node.url, [aForwarded(1)], AGAIN)).toHaveLength(1);
    });
  });
}

/** Reduces an error to the parts that a caller sees. */
function plain(result: ForwardedAnswer | LaneAnswer | FencepostError): unknown {
  return result instanceof FencepostError
    ? { code: result.code, detail: result.message, extras: result.extras }
    : result;
}
