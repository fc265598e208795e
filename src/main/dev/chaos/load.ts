/** Callers and operators of a campaign. Each keeps what it was promised, so that it can be checked at the end. */

import { createClient, FencepostApiError, type FencepostClient } from "../../../client/index.ts";
import type { Address, Hash } from "../../../domain/lane.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { DevAccount } from "../embedded/start-chain.ts";
import type { Dice } from "./dice.ts";
import type { Member } from "./faults.ts";
import type { LoadRecord, Promised, SignedRecord, StopRecord } from "./load-record.ts";

export const KEYS = {
  caller: { name: "caller", secret: "chaos-caller-secret-0001", scopes: "read+submit+reserve+sign" },
  operator: { name: "operator", secret: "chaos-operator-secret-01", scopes: "read+operate+approve+admin" },
} as const;

/** Above this value a transfer needs an approval. */
export const APPROVED_ABOVE = 1_000_000n;
/** Transfers below that bound have values up to this one. */
const MOST_USUAL = 100_000;
const GREETING = "chaos greets you: ";

/**
 * Policies of the signers. The last one may move about half of the value in a day that callers ask it to move: for the
 * rest, the limit refuses.
 */
export function policiesOf(signers: readonly Address[], { minutes, rate }: { minutes: number; rate: number }) {
  const common = {
    requireApproval: { aboveValue: String(APPROVED_ABOVE) },
    messages: { personal: [{ name: "greeting", prefix: GREETING, maxLength: 100 }] },
  };
  const asked = Math.ceil((minutes * 60 * rate * MOST_USUAL) / 2 / signers.length);
  const limited = signers.at(-1) as Address;
  const perDay = BigInt(Math.ceil(asked / 2));
  const policies = { signers: { "*": common, [limited]: { ...common, maxValue: { perDay: String(perDay) } } } };
  return { policies, limited: limited.toLowerCase() as Address, perDay };
}

export interface LoadPlan {
  readonly clock: Clock;
  readonly dice: Dice;
  readonly members: readonly Member[];
  readonly accounts: readonly DevAccount[];
  readonly chainId: number;
  readonly recipient: Address;
  /** Transactions a second that callers try to create. */
  readonly rate: number;
  readonly onAccepted: () => void;
}

const CALLERS = 24;
const PATIENCE_MS = 6_000;
const AGAIN_MS = 150;
const APPROVE_MS = 500;
const LONGEST_STOP_MS = 2_500;
/** Longer than a node needs to store a kill once its database is back. */
const LAST_ROUNDS = 3;
const LAST_ROUND_MS = 2_000;
/** Codes after which the same request is sent again, to another node. */
const AGAIN = new Set(["UNREACHABLE", "UNAVAILABLE", "NOT_LEADER", "QUEUE_FULL", "TIMEOUT", "INTERNAL"]);

type Client = FencepostClient;

export function startLoad(plan: LoadPlan): { readonly record: LoadRecord; stop(): Promise<void> } {
  const load = new Load(plan);
  const stopping = load.stopAndGo();
  const working = Promise.all([stopping, load.callAndApprove(), load.operate()]);
  // A mistake of the campaign itself is reported when the load is stopped.
  working.catch(() => undefined);
  return {
    record: load,
    stop: async () => {
      load.isOver = true;
      await stopping;
      await load.endKills();
      await working;
    },
  };
}

class Load implements LoadRecord {
  readonly promised: Promised[] = [];
  readonly signed: SignedRecord[] = [];
  readonly stops: StopRecord[] = [];
  readonly refused = new Map<string, number>();
  readonly orders = new Map<string, number>();
  isOver = false;
  private readonly plan: LoadPlan;
  /** Ids of what was promised: a repeated request is answered with the same one. */
  private readonly kept = new Set<string>();
  private number = 0;
  private turn = 0;

  constructor(plan: LoadPlan) {
    this.plan = plan;
  }

  /** The last approvals come after the last callers: a request may still be under way when the load is stopped. */
  async callAndApprove(): Promise<void> {
    const calling = { isOver: false };
    const callers = Array.from({ length: CALLERS }, () => this.call());
    const called = Promise.all(callers).finally(() => {
      calling.isOver = true;
    });
    await Promise.all([called, this.approve(calling)]);
  }

  /** Creates transactions at the rate of one caller, through an inlet that is drawn each time. */
  private async call(): Promise<void> {
    const { dice, clock, rate } = this.plan;
    while (!this.isOver) {
      const count = await dice.weighted<() => Promise<number>>([
        [5, () => this.one()],
        [1, () => this.batch(dice.int(2, 12))],
        [2, () => this.overRpc()],
        [1, () => this.reserved()],
        [1, () => this.greet()],
      ])();
      await clock.sleep((count * CALLERS * 1_000 * 2 * dice.int(1, 100)) / 100 / rate);
    }
  }

  async operate(): Promise<void> {
    const { dice, clock } = this.plan;
    while (!this.isOver) {
      await clock.sleep(dice.int(100, 1_500));
      const recent = this.promised.slice(-60);
      if (recent.length === 0) continue;
      const { txId } = dice.pick(recent);
      const order = { reason: "chaos", requestId: this.name("order") };
      const [action, give] = dice.pick<readonly [string, (client: Client) => Promise<unknown>]>([
        ["cancel", (client) => client.cancel(txId, order)],
        ["reprice", (client) => client.reprice(txId, order)],
        ["resubmit", (client) => client.resubmit(txId, order)],
        ["hold", (client) => client.suspendTransaction(txId, order)],
      ]);
      await this.give(action, give);
      if (action !== "hold") continue;
      await clock.sleep(dice.int(0, LONGEST_STOP_MS));
      await this.untilGiven("release", (client) => client.resumeTransaction(txId, { reason: "chaos" }));
    }
  }

  /** Stops a signer or everything, and lets it go on. Nothing may be sent in between. */
  async stopAndGo(): Promise<void> {
    const { dice, clock, members, accounts } = this.plan;
    while (!this.isOver) {
      await clock.sleep(dice.int(4_000, 12_000));
      const signer = dice.pick(accounts).address;
      const member = dice.pick(members);
      const what = dice.pick(["suspend", "kill", "kill everything"] as const);
      const wish = what === "kill" ? { signer, reason: "chaos" } : { reason: "chaos" };
      const client = this.clientOf(member, "operator");
      const stopped = await this.give(what, () =>
        what === "suspend" ? client.suspend(signer, { reason: "chaos" }) : client.kill(wish),
      );
      // A kill binds the node that answers; a suspension is confirmed by the owner and binds every node.
      const stop: StopRecord = {
        what,
        signer: what === "kill everything" ? null : signer,
        node: what === "suspend" ? null : member.name,
        fromMs: clock.monotonicMs(),
        untilMs: Number.POSITIVE_INFINITY,
      };
      if (stopped) this.stops.push(stop);
      await clock.sleep(dice.int(100, LONGEST_STOP_MS));
      stop.untilMs = clock.monotonicMs();
      if (what === "suspend") await this.untilGiven("resume", (other) => other.resume(signer, { reason: "chaos" }));
      else await this.untilGiven("end of kill", (other) => other.endKill(wish));
    }
  }

  /**
   * Ends the kills that stand at the end. One that a node could not store while its database was away is not known to
   * the node that ended it for the caller, and is in force from when it is stored.
   */
  async endKills(): Promise<void> {
    const { clock, members, accounts } = this.plan;
    const orders = [...accounts.map(({ address: signer }) => ({ signer })), {}];
    for (let rounds = 0; rounds < LAST_ROUNDS; rounds++) {
      for (const member of members)
        for (const order of orders)
          await this.untilGiven("last end of kill", () =>
            this.clientOf(member, "operator").endKill({ ...order, reason: "chaos" }),
          );
      await clock.sleep(LAST_ROUND_MS);
    }
  }

  /** The second person: approves two of three transfers above the bound, and rejects the others. */
  private async approve(calling: { readonly isOver: boolean }): Promise<void> {
    const { dice, clock } = this.plan;
    for (let isDone = false; !isDone; await clock.sleep(APPROVE_MS)) {
      const isLast = calling.isOver;
      const awaiting = await this.awaiting();
      for (const txId of awaiting ?? []) {
        const order = { reason: "chaos" };
        if (dice.chance(0.67)) await this.untilGiven("approve", (client) => client.approve(txId, order));
        else await this.untilGiven("reject", (client) => client.reject(txId, order));
      }
      isDone = isLast && awaiting?.length === 0;
    }
  }

  /** Transactions that await an approval; null if no node answers. */
  private async awaiting(): Promise<readonly string[] | null> {
    const client = this.clientOf(this.plan.dice.pick(this.plan.members), "operator");
    try {
      const { items } = await client.list({ state: "CREATED", limit: 200 }, this.patience());
      return items.flatMap(({ txId, subState }) => (subState === "AWAITING_APPROVAL" ? txId : []));
    } catch (error) {
      codeOf(error);
      return null;
    }
  }

  private async one(): Promise<number> {
    const request = this.transfer();
    await this.untilAnswered(async (client) => this.keep(await client.send(request, this.patience())));
    return 1;
  }

  private async batch(count: number): Promise<number> {
    const requests = Array.from({ length: count }, () => this.transfer());
    await this.untilAnswered(async (client) => {
      for (const result of await client.sendBatch(requests, this.patience())) {
        if (!("code" in result)) this.keep(result);
        else if (AGAIN.has(result.code)) throw new Unfinished();
        else this.count(this.refused, result.code);
      }
    });
    return count;
  }

  private async overRpc(): Promise<number> {
    const { signer, requestId, payload } = this.transfer();
    const { to, value } = payload;
    const call = { from: signer, to, value: `0x${value.toString(16)}` };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendTransaction", params: [call] });
    const headers = {
      "content-type": "application/json",
      authorization: `Bearer ${KEYS.caller.secret}`,
      "idempotency-key": requestId,
    };
    await this.untilAnswered(async (client, { node }) => {
      const response = await fetch(`${node().url}/rpc`, {
        method: "POST",
        headers,
        body,
        signal: this.patience().signal,
      });
      const { result, error } = (await response.json()) as { result?: Hash; error?: { message: string } };
      if (result !== undefined) {
        this.keep(await client.getByRequest({ signer, requestId }, this.patience()));
        return;
      }
      // Some refusals are for now; a definite one would be repeated with the same answer until the campaign ends.
      this.count(this.refused, `rpc: ${error?.message.split(":", 1)[0]}`);
      if (response.status >= 500 || this.isOver) return;
      throw new Unfinished();
    }, 20);
    return 1;
  }

  /** Reserves a nonce, signs with it, and hands the bytes in; or releases it. */
  private async reserved(): Promise<number> {
    const { dice, accounts, chainId, recipient } = this.plan;
    const account = dice.pick(accounts);
    const requestId = this.name("reserved");
    const { privateKeyToAccount } = await import("viem/accounts");
    await this.untilAnswered(async (client) => {
      const lane = { signer: account.address, requestId, ttl: "20s" } as const;
      const { reservationId, nonce, state } = await client.reserveNonce(lane, this.patience());
      if (state !== "RESERVED") return;
      if (dice.chance(0.3)) return void (await client.releaseNonce(reservationId, this.patience()));
      const rawTransaction = await privateKeyToAccount(account.privateKey).signTransaction({
        ...{ chainId, nonce, to: recipient, value: 1n, gas: 21_000n, type: "eip1559" },
        ...{ maxFeePerGas: 300n * GWEI, maxPriorityFeePerGas: GWEI },
      });
      this.keep(await client.submitReserved(reservationId, rawTransaction, this.patience()));
    }, 20);
    return 1;
  }

  /** Asks for the same signature twice. */
  private async greet(): Promise<number> {
    const { dice, clock, accounts } = this.plan;
    const { address: signer } = dice.pick(accounts);
    const requestId = this.name("greeting");
    const message = `${GREETING}${requestId}`;
    for (let time = 0; time < 2; time++)
      await this.untilAnswered(async (client, { name: node }) => {
        const askedMs = clock.monotonicMs();
        const { signature } = await client.sign({ signer, requestId, message }, this.patience());
        if (signature === null) throw new Error(`the signature of ${requestId} is not there`);
        this.signed.push({ signer, requestId, message, signature, node, askedMs, atMs: clock.monotonicMs() });
      });
    return 1;
  }

  private transfer() {
    const { dice, accounts, recipient } = this.plan;
    const value = dice.chance(0.04) ? APPROVED_ABOVE + BigInt(dice.int(1, 1_000)) : BigInt(dice.int(1, MOST_USUAL));
    return { signer: dice.pick(accounts).address, requestId: this.name("transfer"), payload: { to: recipient, value } };
  }

  private keep(created: { txId: string; signer: Address; requestId: string | null }): void {
    const { txId, signer, requestId } = created;
    if (this.kept.has(txId)) return;
    this.kept.add(txId);
    this.promised.push({ txId, signer: signer.toLowerCase() as Address, requestId });
    this.plan.onAccepted();
  }

  /** Sends a request, with the same request id, to one node after the other until it has an answer. */
  private async untilAnswered(
    work: (client: Client, member: Member) => Promise<void>,
    most = Number.POSITIVE_INFINITY,
  ) {
    const { clock, members } = this.plan;
    for (let attempt = 0; attempt < most; attempt++) {
      const member = members[this.turn++ % members.length] as Member;
      try {
        return await work(this.clientOf(member, "caller"), member);
      } catch (error) {
        const code = codeOf(error);
        if (!AGAIN.has(code)) return this.count(this.refused, code);
      }
      await clock.sleep(AGAIN_MS);
    }
  }

  /** Gives an order to any node, once. True if it was carried out. */
  private async give(action: string, order: (client: Client) => Promise<unknown>): Promise<boolean> {
    try {
      await order(this.clientOf(this.plan.dice.pick(this.plan.members), "operator"));
      this.count(this.orders, action);
      return true;
    } catch (error) {
      this.count(this.orders, `${action}: ${codeOf(error)}`);
      return false;
    }
  }

  private async untilGiven(action: string, order: (client: Client) => Promise<unknown>): Promise<void> {
    for (let attempt = 0; attempt < 400; attempt++) {
      try {
        await order(this.clientOf(this.plan.dice.pick(this.plan.members), "operator"));
        return this.count(this.orders, action);
      } catch (error) {
        const code = codeOf(error);
        if (!AGAIN.has(code)) return this.count(this.orders, `${action}: ${code}`);
        await this.plan.clock.sleep(AGAIN_MS);
      }
    }
  }

  private readonly clients = new Map<string, Client>();

  /** The port of a node changes when it is started again. */
  private clientOf(member: Member, role: keyof typeof KEYS): Client {
    const { url } = member.node();
    const known = this.clients.get(`${role} ${url}`);
    const client = known ?? createClient({ url, apiKey: KEYS[role].secret, repeat: false });
    this.clients.set(`${role} ${url}`, client);
    return client;
  }

  private patience() {
    return { signal: AbortSignal.timeout(PATIENCE_MS) };
  }

  private name(kind: string): string {
    return `${kind}-${++this.number}`;
  }

  private count(counts: Map<string, number>, what: string): void {
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
}

const GWEI = 10n ** 9n;

/** Part of a request has no answer yet. */
class Unfinished extends Error {}

function codeOf(error: unknown): string {
  if (error instanceof FencepostApiError) return error.code;
  if (error instanceof Unfinished || (error as Error).name === "TimeoutError" || error instanceof TypeError)
    return "UNREACHABLE";
  throw error;
}
