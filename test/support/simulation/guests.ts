import { RpcFailure, type RpcItem, type RpcOutcome } from "../../../src/adapters/http/rpc/packet.ts";
import type { RpcContext } from "../../../src/adapters/http/rpc/rpc-context.ts";
import { answerSends } from "../../../src/adapters/http/rpc/sends.ts";
import { limitedTo } from "../../../src/application/authority.ts";
import { KeyRates } from "../../../src/application/key-rates.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { ANYBODY, type Principal, type Scope } from "../../../src/domain/keys/principal.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { TransactionRow } from "../../doubles/memory-store/state.ts";
import { CHAIN_ID, SIGNERS, TO, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import { FALSE_REFUSAL } from "./callers.ts";

const CLIENT_TIMEOUT_MS = 3_000;
/** First value of the guests' payloads, far from those of other actors, so that a payload shows its sender. */
const FIRST_VALUE = 300_000_000;
const [OWN, ...OTHERS] = SIGNERS as readonly [Address, ...Address[]];
const A_SECOND_MS = 1_000;
const RATE = 2;

const keyOf = (name: string, scopes: readonly Scope[], limits: Partial<Principal> = {}): Principal => {
  return { ...ANYBODY, name, scopes: new Set(scopes), ...limits };
};
/** May do everything, with one signer alone. */
const GUEST = keyOf("guest", ["read", "submit", "reserve", "operate", "approve", "admin"], { signers: new Set([OWN]) });
/** Sees everything, and may act on what it made. */
const READER = keyOf("reader", ["read", "submit"]);
const HASTY = keyOf("hasty", ["read", "submit"], { createsPerSecond: RATE });
const ABROAD = keyOf("abroad", ["read", "operate", "admin"], { chains: new Set([CHAIN_ID]) });
const WALLETS = [keyOf("wallet a", ["read", "submit"]), keyOf("wallet b", ["read", "submit"])] as const;
/** Refusals that anything may get while nodes, database or chain fail, or prices move. */
const ANY_TIME = /UNAVAILABLE|NOT_LEADER|QUEUE_FULL|SUBMISSION_REJECTED|CONFLICT/;

type Api = WorldNode["node"]["api"];

/**
 * Simulated API keys with limits and scopes, each through the API that it has: they see and do what is theirs, at most
 * at their rate, and nothing else. Wallets among them repeat sends that got no answer, without a request id.
 */
export class Guests extends Actor {
  readonly counts = new Map<string, number>();
  private readonly rates = new Map<WorldNode, KeyRates>();
  private serial = 0;
  private isRushing = false;

  /** What may happen in one step of a simulation. */
  step(): void {
    const { dice } = this;
    if (dice.chance(0.4)) this.begin(this.look());
    if (dice.chance(0.3)) this.begin(this.trespass());
    if (dice.chance(0.15)) this.begin(this.createOne());
    if (dice.chance(0.15) && !this.isRushing) this.begin(this.rush());
    if (dice.chance(0.15)) this.begin(this.sendTwice());
  }

  /** Reads a list: everything in it must be of the key's signer. */
  private async look(): Promise<void> {
    const ofLanes = (items: readonly { readonly lane: { readonly signer: string } }[]) =>
      items.map(({ lane }) => lane.signer);
    const lists: readonly ((api: Api) => Promise<readonly string[]>)[] = [
      async (api) => ofLanes((await api.transactions({ limit: 50 })).items),
      async (api) => ofLanes((await api.completions({ after: 0, limit: 50 })).items),
      async (api) => ofLanes((await api.signers({ limit: 10 })).items),
      async (api) => ofLanes(await api.leases()),
      async (api) => ofLanes((await api.policyUsage({})).signers),
      async (api) => (await api.policyUsage({})).keys.map(({ key }) => (key === GUEST.name ? OWN : key)),
      async (api) => signersIn((await api.policies()).policies),
      async (api) => (await api.search({ q: "0xaaaa" })).flatMap(({ signer }) => signer ?? []),
      async (api) => ((await api.completions({ after: 0, limit: 5 })).filtered === true ? [] : ["no word of a filter"]),
    ];
    const list = this.dice.pick(lists);
    const shown = await this.ask(GUEST, list);
    if (shown === null || shown instanceof FencepostError) return;
    const others = shown.filter((signer) => signer.toLowerCase() !== OWN);
    if (others.length > 0) this.wrong(`a guest saw ${others.join()}`);
    this.count("looked as a guest");
  }

  /** Asks for what the key may not have. */
  private async trespass(): Promise<void> {
    const hidden = this.rowOf(({ lane }) => lane.signer !== OWN);
    const foreign = this.rowOf(({ owner }) => owner !== READER.name);
    const txId = hidden?.txId ?? "00000000-0000-4000-8000-000000000000";
    const other = this.dice.pick(OTHERS);
    const request = { reason: "not mine" };
    const act = (action: "cancel" | "approve" | "resubmit", id: string) => (api: Api) =>
      api.act({ action, txId: id, request, actor: "operator:guest" });
    const kill = (signer: string | null) => (api: Api) => api.kill({ signer, request, actor: "operator:guest" });
    const check = { signer: OWN, payload: { to: TO, value: "1" } };
    const [who, what] = this.dice.pick<readonly [Principal, (api: Api) => Promise<unknown>]>([
      [GUEST, (api) => api.transaction(txId)],
      [GUEST, (api) => api.transaction(txId, ["logs"])],
      [GUEST, (api) => api.explain(txId)],
      [GUEST, act("cancel", txId)],
      [GUEST, act("resubmit", txId)],
      [GUEST, (api) => api.transactions({ signer: other })],
      [GUEST, (api) => api.signer(other)],
      [GUEST, (api) => api.create({ signer: other, payload: this.payload() })],
      [GUEST, (api) => api.createBatch([{ signer: other, payload: this.payload() }]).then(([each]) => thrown(each))],
      [GUEST, (api) => api.policyUsage({ key: "payer" })],
      [GUEST, (api) => api.checkPolicy(check, "payer")],
      [GUEST, (api) => api.keys()],
      [GUEST, kill(null)],
      [GUEST, kill(other)],
      [ABROAD, kill(null)],
      [READER, (api) => api.checkPolicy(check, "payer")],
      [READER, act("approve", foreign?.txId ?? txId)],
      [READER, act("cancel", foreign?.txId ?? txId)],
      [READER, act("resubmit", foreign?.txId ?? txId)],
    ]);
    const answer = await this.ask(who, what);
    if (answer === null) return;
    if (!(answer instanceof FencepostError)) return this.wrong(`${who.name} was allowed ${what}`);
    if (!["FORBIDDEN", "NOT_FOUND", "UNAVAILABLE"].includes(answer.code))
      this.wrong(`${who.name} got ${String(answer)}`);
    this.count(`trespassed: ${answer.code}`);
  }

  /** What a key makes is its own. */
  private async createOne(): Promise<void> {
    const payload = this.payload();
    const made = await this.ask(GUEST, (api) => api.create({ signer: OWN, payload }));
    if (made === null || made instanceof FencepostError) return;
    const row = this.rowOf(({ txId }) => txId === made.txId);
    if (row !== null && row.owner !== GUEST.name) this.wrong(`what a guest made belongs to ${row.owner}`);
    const explained = await this.ask(GUEST, (api) => api.explain(made.txId));
    const { blockedBy } = explained === null || explained instanceof FencepostError ? { blockedBy: null } : explained;
    if (blockedBy != null && "txId" in blockedBy) this.wrong("a guest was told which transaction is in the way");
  }

  /** A key with a rate asks one node for more than that, twice at once, and once more after a second. */
  private async rush(): Promise<void> {
    this.isRushing = true;
    try {
      const nodes = this.nodes();
      if (nodes.length === 0) return;
      const node = this.dice.pick(nodes);
      await this.world.clock.sleep(A_SECOND_MS);
      const taken = async () => {
        const requests = [1, 2, 3].map(() => ({ signer: this.dice.pick(SIGNERS), payload: this.payload() }));
        const answers = await this.limited(this.apiFor(node, HASTY).createBatch(requests));
        const isLate = (each: unknown) => each instanceof FencepostError && each.code === "QUOTA_EXCEEDED";
        return answers === null ? null : answers.filter((each) => !isLate(each)).length;
      };
      const both = await Promise.all([taken(), taken()]);
      const sum = (both[0] ?? 0) + (both[1] ?? 0);
      if (sum > RATE) this.wrong(`a key with ${RATE} creates a second took ${sum} at once`);
      await this.world.clock.sleep(A_SECOND_MS);
      const later = await taken();
      if (later !== null && later !== RATE)
        this.wrong(`a second later, a key with ${RATE} creates a second took ${later}`);
      this.count("rate of a key");
    } finally {
      this.isRushing = false;
    }
  }

  /** Two wallets send the same, and one repeats it: each pays once. */
  private async sendTwice(): Promise<void> {
    const value = FIRST_VALUE + ++this.serial * 10;
    const [first, second] = WALLETS;
    const answers = [await this.send(first, value), await this.send(second, value), await this.send(first, value)];
    const hashes = answers.map((each) => (each !== null && !(each instanceof RpcFailure) ? each.json : null));
    if (hashes[0] != null && hashes[0] === hashes[1]) this.wrong(`two wallets share ${hashes[0]}`);
    if (hashes[0] != null && hashes[2] != null && hashes[0] !== hashes[2]) this.wrong("a wallet's repeat paid again");
    for (const each of answers)
      if (each instanceof RpcFailure && /another API key|belongs to/.test(each.message)) this.wrong(each.message);
    const rows = this.world.rows().filter(({ payload }) => payload.value === BigInt(value));
    if (new Set(rows.map(({ owner }) => owner)).size < rows.length)
      this.wrong(`${rows.length} wallets' payments of ${value}`);
    this.count("sent by two wallets");
  }

  private async send(principal: Principal, value: number): Promise<RpcOutcome | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const node = this.dice.pick(nodes);
    const { clock } = this.world;
    const hex = (amount: bigint) => `0x${amount.toString(16)}`;
    const fees = { maxFeePerGas: hex(20_000_000_000n), maxPriorityFeePerGas: hex(1_000_000_000n) };
    const transaction = { from: OWN, to: TO, value: hex(BigInt(value)), gas: hex(21_000n), ...fees };
    const item: RpcItem = { id: 1, method: "eth_sendTransaction", params: [transaction], index: null };
    const context = {
      ...{ api: this.apiFor(node, principal), principal, clock, chainId: CHAIN_ID, mergesRepeats: true },
      ...{ requestId: null, ignoresNonce: true, allowsNoCode: false, signal: new AbortController().signal },
      ...{
        deadlineMs: clock.monotonicMs() + CLIENT_TIMEOUT_MS,
        mask: (text: string) => text,
        onRefused: () => undefined,
      },
    } as unknown as RpcContext;
    let outcome: RpcOutcome | null = null;
    await this.limited(
      answerSends(context, [item], (_, answer) => {
        outcome = answer;
      }),
    );
    return outcome;
  }

  /** Asks once. Null: no answer, or one that may change. A refusal is returned. */
  private async ask<T>(principal: Principal, call: (api: Api) => Promise<T>): Promise<T | FencepostError | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const asked = call(this.apiFor(this.dice.pick(nodes), principal)).catch((error: unknown) => {
      if (error instanceof FencepostError) return ANY_TIME.test(error.code) ? null : error;
      this.wrong(`${principal.name} was answered ${String(error)}`);
      return null;
    });
    return this.limited(asked);
  }

  private limited<T>(work: Promise<T>): Promise<T | null> {
    return Promise.race([work, this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null)]);
  }

  private apiFor(node: WorldNode, principal: Principal): Api {
    const rates = this.rates.get(node) ?? new KeyRates(this.world.clock);
    this.rates.set(node, rates);
    return limitedTo(principal, node.node.api, rates);
  }

  private rowOf(isIt: (row: TransactionRow) => boolean): TransactionRow | null {
    const rows = [...this.world.database.state.transactions.values()].filter(isIt);
    const open = rows.filter(({ state }) => !isSettled(state));
    const [first = null] = open.length > 0 ? open : rows;
    return first;
  }

  private payload() {
    const fees = { maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" };
    return { to: TO, value: FIRST_VALUE + ++this.serial * 10, gas: 21_000, ...fees };
  }

  private wrong(what: string): void {
    if (!FALSE_REFUSAL.test(what)) this.absurd.push(what);
  }

  private count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
}

/** Signers and keys that a policy document names, as far as they are not the guest's. */
function signersIn(policies: unknown): readonly string[] {
  const { signers = {}, keys = {} } = (policies ?? {}) as { readonly signers?: object; readonly keys?: object };
  const named = Object.keys(keys).map((key) => (key === GUEST.name ? OWN : key));
  return [...Object.keys(signers), ...named].filter((name) => name !== "*");
}

function thrown<T>(result: T | FencepostError | undefined): T | undefined {
  if (result instanceof FencepostError) throw result;
  return result;
}
