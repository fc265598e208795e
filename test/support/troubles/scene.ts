/** A whole node on a real database, which reaches the real chain only through a proxy that injects faults. */
import { keccak256 } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { isTaken } from "../../../src/domain/chain/answers.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import {
  createFencepost,
  type Fencepost,
  FencepostError,
  type FencepostOptions,
  type SentTransaction,
  type TelemetryEvent,
  type Transaction,
} from "../../../src/index.ts";
import { startEmbeddedChain } from "../../../src/main/dev/embedded/start-chain.ts";
import { it as base, type Database, KEYS, SIGNER } from "../integration.ts";
import { type ProxiedCall, type RpcProxy, type Rule, startRpcProxy, type Treatment } from "../rpc-proxy.ts";
import { type Patience, waitUntil } from "../wait-until.ts";
import { DrivenChain } from "./driven-chain.ts";
import { payloadData, placeTally, TALLY } from "./tally.ts";

export const SEND = "eth_sendRawTransaction";
export const COUNT = "eth_getTransactionCount";
export const GWEI = 1_000_000_000n;
const PATIENCE: Patience = { everyMs: 20, giveUpMs: 90_000 };

export type Policy = "heal" | "move";

export interface Setting {
  readonly chain?: Partial<FencepostOptions["chains"][number]>;
  /** If set, no blocks are mined until the fault has been arranged. */
  readonly still?: true;
  /** True if the chain has a second endpoint with a separate proxy; 2 means two additional endpoints. */
  readonly spare?: true | 2;
}

const QUICK = {
  confirmations: 2,
  pollInterval: "40ms",
  resubmitInterval: "300ms",
  staleReceiptTimeout: "300ms",
  reconciliationInterval: "300ms",
  grayZoneInterval: "300ms",
  nonceStateTimeout: "100ms",
  // A long time, so that no transaction is stuck only because a machine is slow.
  stuckAfter: "10m",
} as const;

interface Parts {
  readonly fencepost: Fencepost;
  readonly chain: DrivenChain;
  readonly proxy: RpcProxy;
  readonly spares: readonly RpcProxy[];
  readonly database: Database;
  readonly events: readonly TelemetryEvent[];
  readonly policy: Policy;
}

export interface PayOptions {
  readonly gas?: bigint;
  readonly fees?: Readonly<Record<string, bigint>>;
}

export class Scene {
  readonly fencepost: Fencepost;
  readonly chain: DrivenChain;
  readonly proxy: RpcProxy;
  readonly database: Database;
  readonly events: readonly TelemetryEvent[];
  readonly policy: Policy;
  /**
   * Signed bytes that reached a proxy before the database had them and the node's right to send them (invariant I6).
   */
  readonly tooEarly: string[] = [];
  /** The proxies of all endpoints except the first. */
  readonly spares: readonly RpcProxy[];
  private readonly paid = new Map<number, string>();

  constructor(parts: Parts) {
    this.fencepost = parts.fencepost;
    this.chain = parts.chain;
    this.proxy = parts.proxy;
    this.database = parts.database;
    this.events = parts.events;
    this.policy = parts.policy;
    this.spares = parts.spares;
    for (const proxy of this.proxies) proxy.rule({ methods: [SEND] }, (call, next) => this.witness(call, next));
  }

  get spare(): RpcProxy {
    const [spare] = this.spares;
    if (spare === undefined) throw new Error("this scene has one endpoint");
    return spare;
  }

  private get proxies(): readonly RpcProxy[] {
    return [this.proxy, ...this.spares];
  }

  get payloads(): readonly number[] {
    return [...this.paid.keys()];
  }

  /**
   * Sends payload `number`; the contract counts its executions under that number. If the outcome is unknown, it is
   * repeated with the same request id.
   */
  async pay(number: number, { gas = 100_000n, fees = {} }: PayOptions = {}): Promise<SentTransaction> {
    const price = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI, ...fees };
    const quantities = Object.fromEntries(Object.entries({ gas, ...price }).map(([name, wei]) => [name, String(wei)]));
    const payload = { to: TALLY, data: payloadData(number), ...quantities };
    const intent = { signer: SIGNER, requestId: `payload-${number}`, payload };
    const ask = () => this.fencepost.send(intent).catch(patiently);
    const created = await waitUntil(ask, `payload ${number} is accepted`, PATIENCE);
    this.paid.set(number, created.txId);
    return created;
  }

  async payAll(...numbers: readonly number[]): Promise<void> {
    for (const number of numbers) await this.pay(number);
  }

  view(number: number): Promise<Transaction> {
    return this.fencepost.get(this.txIdOf(number), { include: ["history"] });
  }

  txIdOf(number: number): string {
    const txId = this.paid.get(number);
    if (txId === undefined) throw new Error(`payload ${number} was not sent`);
    return txId;
  }

  /** The bytes of an attempt from the database; of the first one by default. */
  async bytesOf(number: number, ordinal = 1): Promise<Hex> {
    const [row] = await this.database.query<{ raw: string }>(
      "SELECT '0x' || encode(raw_transaction, 'hex') AS raw FROM fencepost.attempt WHERE tx_id = $1 AND ordinal = $2",
      [this.txIdOf(number), ordinal],
    );
    return (row as { raw: Hex }).raw;
  }

  /** The lane's next nonce in the database. */
  async nextNonce(): Promise<number> {
    const [lane] = await this.database.query<{ next_nonce: string }>("SELECT next_nonce FROM fencepost.lane");
    return Number(lane?.next_nonce);
  }

  until(fact: () => Promise<unknown> | unknown, what: string): Promise<unknown> {
    return waitUntil(async () => (await fact()) || null, what, PATIENCE);
  }

  /**
   * Waits until a node has accepted each of these payloads, at any price. Their state by then depends on the machine's
   * speed.
   */
  async untilTaken(...numbers: readonly number[]): Promise<void> {
    const taken = (txId: string) => this.answers.some((event) => event.txId === txId && isTaken(event.answer));
    await this.until(() => numbers.every((number) => taken(this.txIdOf(number))), `${numbers.join(", ")} are taken`);
  }

  /** The chain's answers to sends, oldest first. */
  get answers() {
    return this.events.filter((event) => event.type === "submit.answered");
  }

  async untilMined(...numbers: readonly number[]): Promise<void> {
    const look = async () => {
      const views = await Promise.all(numbers.map((number) => this.view(number)));
      return views.every(({ receipt }) => receipt !== null);
    };
    await this.until(look, `${numbers.join(", ")} are mined`);
  }

  /** Waits for a lasting state: a final one, or STUCK if nothing can proceed. */
  async untilAre(state: string, ...numbers: readonly number[]): Promise<void> {
    const look = async () => {
      const views = await Promise.all(numbers.map((number) => this.view(number)));
      return views.every((view) => view.state === state);
    };
    await this.until(look, `${numbers.join(", ")} are ${state}`);
  }

  async untilAttempts(number: number, count: number): Promise<void> {
    await this.until(
      async () => (await this.view(number)).attempts.length >= count,
      `${number} is signed ${count} times`,
    );
  }

  async untilStruck(rule: Rule, times = 1): Promise<void> {
    await this.until(() => rule.struck >= times, `the fault has struck ${times} times`);
  }

  async untilAlert(code: string): Promise<void> {
    await this.until(() => this.events.some((event) => event.type === "alert" && event.code === code), `alert ${code}`);
  }

  /** Applies this fault to every send of the payload, at every price, through every endpoint. */
  onSendOf(number: number, treatment: Treatment, times?: number): Rule {
    // Match the RLP length byte before the number too. Otherwise the end of a longer number could match.
    const mark = `a0${payloadData(number).slice(2)}`;
    const when = ({ params }: ProxiedCall) => String(params[0]).includes(mark);
    return this.proxy.rule({ methods: [SEND], when, ...(times === undefined ? {} : { times }) }, treatment);
  }

  onSends(treatment: Treatment, times?: number): Rule {
    return this.proxy.rule({ methods: [SEND], ...(times === undefined ? {} : { times }) }, treatment);
  }

  /** A signed transaction of another program that uses our key. */
  async foreign(nonce: number, tipGwei = 50n): Promise<Hex> {
    const fees = { maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: tipGwei * GWEI };
    return privateKeyToAccount(KEYS[0]).signTransaction({
      ...{ type: "eip1559", chainId: this.chain.node.chainId, nonce, to: SIGNER, value: 7n, gas: 21_000n, ...fees },
    });
  }

  /** Hashes of every transaction that was sent through a proxy. */
  get witnessed(): readonly string[] {
    const sends = this.proxies.flatMap(({ calls }) => calls.filter(({ method }) => method === SEND));
    return sends.map(({ params }) => keccak256(params[0] as Hex));
  }

  private async witness(call: ProxiedCall, next: () => Promise<Awaited<ReturnType<Treatment>>>) {
    const hash = keccak256(call.params[0] as Hex);
    const known = "SELECT 1 FROM fencepost.attempt WHERE tx_hash = $1 AND first_sent_at IS NOT NULL";
    if ((await this.database.query(known, [hash])).length === 0) this.tooEarly.push(hash);
    return next();
  }
}

function patiently(error: unknown): null {
  if (error instanceof FencepostError && error.code === "UNAVAILABLE") return null;
  throw error;
}

export type Staged = (setting: Setting | undefined, policy: Policy) => Promise<Scene>;

export const it = base.extend<{ readonly stage: Staged }>({
  stage: async ({ database }, use) => {
    const closing: (() => Promise<unknown>)[] = [];
    await use(async ({ chain: options, still, spare: wanted = false } = {}, policy) => {
      const chain = new DrivenChain(await startEmbeddedChain());
      closing.push(() => chain.stop());
      if (still === true) await chain.pause();
      await placeTally(chain.node);
      await chain.mine(3);
      const proxy = await startRpcProxy(chain.node.url);
      const spares = await Promise.all(Array.from({ length: Number(wanted) }, () => startRpcProxy(chain.node.url)));
      closing.push(...[proxy, ...spares].map((each) => () => each.close()));
      const events: TelemetryEvent[] = [];
      const rpc = [proxy, ...spares].map(({ url }) => url);
      const fencepost = await createFencepost({
        databaseUrl: database.url,
        chains: [{ rpc, ...QUICK, holePolicy: policy, ...options }],
        signers: [KEYS[0]],
        // A long lease, so that this node keeps its lanes on a busy machine. Other suites test the loss of lanes.
        ...{ leaseDuration: "120s", leaseRenewInterval: "5s" },
        onEvent: (event) => void events.push(event),
      });
      closing.push(() => fencepost.close());
      return new Scene({ fencepost, chain, proxy, spares, database, events, policy });
    });
    for (const close of closing.reverse()) await close();
  },
});
