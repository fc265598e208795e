import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address, Hash, Hex } from "../../../src/domain/lane.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { hashKey, waitingIntake } from "../../doubles/memory-store/state.ts";
import { CHAIN_ID, SIGNERS, TO, type World, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import { PAYER } from "./payers.ts";

const CLIENT_TIMEOUT_MS = 3_000;
const PATIENCE = 40;
const SENT_AGAIN_MS = 3_000;
const ACTOR = "operator:clerk";
/** First value of the clerks' payloads, far from those of other actors, so that a payload shows its sender. */
const FIRST_VALUE = 90_000_000;
const LATER: readonly string[] = ["UNAVAILABLE", "NOT_LEADER", "QUOTA_EXCEEDED"];
/** Error codes that a clerk may get although no node is at fault. */
const EXPECTED: readonly string[] = [...LATER, "CONFLICT", "NOT_FOUND", "UNKNOWN_SIGNER", "SUBMISSION_REJECTED"];

type Api = WorldNode["node"]["api"];

/**
 * Simulated people and programs that read everything there is to read, at any node and during all faults, and do the
 * small things: keys, ABIs, notices, approvals of transactions, and nonces that they use themselves.
 */
export class Clerks extends Actor {
  private readonly signer = new FakeSigner(SIGNERS);
  private serial = 0;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[]) {
    super(world, dice, nodes);
  }

  /** Reads one thing. */
  read(): void {
    const { state } = this.world.database;
    const signer = this.dice.pick(SIGNERS);
    const txId = this.dice.pick([...state.transactions.keys(), "00000000-0000-4000-8000-000000000000"]);
    const reservationId = this.dice.pick([...state.reservations().map((each) => each.reservationId), txId]);
    const reads: readonly ((api: Api) => Promise<unknown>)[] = [
      (api) => this.readBack(api, txId),
      (api) => api.transactionByRequest({ signer, requestId: "request 3" }),
      (api) => api.transactions({ limit: 5 }),
      (api) => api.explain(txId),
      (api) => api.reservation(reservationId),
      (api) => api.signers({ limit: 2 }),
      (api) => api.signer(signer, { fresh: true }),
      (api) => api.namedSigners(),
      (api) => api.keys(),
      (api) => api.policies(),
      (api) => api.policyUsage({ signer }),
      (api) => api.checkPolicy({ signer, payload: { to: TO, value: "1" } }),
      (api) => api.me(),
      (api) => api.nodes(),
      (api) => api.leases(),
      (api) => api.attention({ limit: 5 }),
      (api) => api.overview(),
      (api) => api.search({ q: txId.slice(0, 8) }),
      (api) => api.nonceRuler(signer),
      (api) => api.notices({ limit: 5 }),
      (api) => api.clusterHistory({ limit: 5 }),
      (api) => api.history({}),
      (api) => api.costs({}),
      (api) => api.abis(),
      (api) => api.readiness(),
    ];
    this.begin(this.ask(this.dice.pick(reads)).then(() => undefined));
  }

  /** Does one of the things that no other actor does. */
  act(): void {
    const { notices } = this.world.database.state;
    const noticeId = this.dice.pick([...notices.keys(), "00000000-0000-4000-8000-000000000000"]);
    const times = notices.get(noticeId)?.notice.times ?? 1;
    const name = `key-${this.dice.int(1, 3)}`;
    const deeds: readonly (() => Promise<unknown>)[] = [
      () => this.ask((api) => api.addKey({ name, scopes: ["read"] }, ACTOR)),
      () => this.ask((api) => api.revokeKey(name, undefined, ACTOR)),
      () => this.ask((api) => api.putAbis({ items: [] }, ACTOR)),
      () => this.ask((api) => api.acknowledge({ noticeId, request: { reason: "seen", times }, actor: ACTOR })),
      () => this.sendItself(++this.serial),
    ];
    this.begin(
      this.dice
        .pick(deeds)()
        .then(() => undefined),
    );
  }

  /** Approves or rejects a transaction that waits for it, or one that does not. */
  decide(): void {
    const { state } = this.world.database;
    const waiting = waitingIntake(state).flatMap(({ approval, intent }) => (approval === null ? [] : intent.txId));
    const ids = waiting.length > 0 ? waiting : [...state.transactions.keys()];
    if (ids.length === 0) return;
    const asked = { txId: this.dice.pick(ids), request: { reason: "a second pair of eyes" }, actor: ACTOR };
    const action = this.dice.pick(["approve", "approve", "reject"] as const);
    this.begin(this.ask((api) => api.act({ ...asked, action })).then(() => undefined));
  }

  /** Transactions of a key whose policy asks for approval, which were executed although nobody approved them. */
  unapproved(): readonly string[] {
    const big = this.world.rows().filter(({ owner, payload }) => owner === PAYER && payload.value > PAYER_ALONE);
    const ran = big.filter(({ nonce, state }) => nonce !== null && state === "CONFIRMED");
    return ran.flatMap(({ txId, history }) => (history.some(({ event }) => event === "approve") ? [] : txId));
  }

  private async readBack(api: Api, txId: string): Promise<void> {
    const found = await api.transaction(txId, ["history", "confirmations", "logs"]);
    if (found.txId !== txId) this.absurd.push(`${found.txId} was answered for ${txId}`);
  }

  /** Reserves a nonce, sends a transaction with it directly to the chain, and reports its hash. */
  private async sendItself(serial: number): Promise<void> {
    const signer = this.dice.pick(this.world.ownSigners);
    const request = { signer, ttl: "20s", requestId: `clerk ${serial}` };
    const reserved = await this.surely((api) => api.reserveNonce(request));
    if (reserved === null || reserved.reservation.state !== "RESERVED") return;
    const { nonce, reservationId } = reserved.reservation;
    const rawTransaction = await this.sign(signer, nonce, FIRST_VALUE + serial * 10);
    const txHash = await this.world.sendHidden(rawTransaction);
    void this.keepSending(rawTransaction, txHash);
    await this.surely((api) => api.markUsed(reservationId, { txHash }));
  }

  /**
   * Sends a transaction again for as long as a node follows its hash: no node has its bytes, so if the chain loses them
   * or a reorg drops them, only the clerk can send them.
   */
  private async keepSending(rawTransaction: Hex, txHash: Hash): Promise<never> {
    for (;;) {
      await this.world.clock.sleep(SENT_AGAIN_MS);
      const { state } = this.world.database;
      const known = state.hashes.get(hashKey(CHAIN_ID, txHash));
      const row = known === undefined ? undefined : state.transactions.get(known.txId);
      if (row !== undefined && !isSettled(row.state)) await this.world.sendHidden(rawTransaction);
    }
  }

  private async sign(signer: Address, nonce: number, value: number) {
    const fees = { type: "eip1559", maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n } as const;
    const content = { to: TO, data: "0x", value: BigInt(value), gas: 21_000n, fees, accessList: [] } as const;
    const [made] = await this.signer.sign(signer, [{ chainId: CHAIN_ID, nonce, ...content }]);
    if (made === undefined) throw new Error("the signer returned nothing");
    return made.rawTransaction;
  }

  private async surely<T>(ask: (api: Api) => Promise<T>): Promise<T | null> {
    for (let attempt = 0; attempt < PATIENCE; attempt++) {
      if (attempt > 0) await this.world.clock.sleep(this.dice.int(50, 800));
      const answer = await this.ask(ask);
      if (answer === "refused") return null;
      if (answer !== null) return answer;
    }
    return null;
  }

  /** Asks once. Null if there was no answer, or one that may change. */
  private async ask<T>(ask: (api: Api) => Promise<T>): Promise<T | "refused" | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const noted = ask(this.dice.pick(nodes).node.api).catch((error: unknown) => {
      const code = error instanceof FencepostError ? error.code : String(error);
      if (!EXPECTED.includes(code))
        this.absurd.push(`a clerk was answered ${String(error)} by ${String(ask).slice(0, 60)}`);
      return LATER.includes(code) ? null : ("refused" as const);
    });
    return Promise.race([noted, this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null)]);
  }
}

/** Largest value that a payer's key may send without approval, where the policies are in force. */
export const PAYER_ALONE = 70_000_020n;
