import type { Created, CreateRequest } from "../../../../src/application/api.ts";
import type { SubmitResult } from "../../../../src/domain/chain/answers.ts";
import type { Address, Hex } from "../../../../src/domain/lane.ts";
import { Dice } from "../../../../src/main/dev/chaos/dice.ts";
import type { TelemetryEvent } from "../../../../src/ports/telemetry.ts";
import type { TransactionRow } from "../../../doubles/memory-store/state.ts";
import type { DirectChain } from "../../../doubles/simulated-chain/chain-port.ts";
import { SIGNER, TO, transfer, World, type WorldNode, type WorldOptions } from "../../world.ts";
import { WireWatch } from "../wire-watch.ts";

const LASTING_SEEDS = 0x7ade_0000;

/** Bytes that were handed to an endpoint, and its answer. */
export interface Sent {
  readonly atMs: number;
  readonly raw: Hex;
  readonly txId: string;
  readonly nonce: number;
  readonly answer: SubmitResult["answer"];
}

/** What the endpoint answers to these bytes in place of the chain; null: the chain answers. */
export type Script = (sent: Omit<Sent, "answer">) => SubmitResult | null;

type Submit = DirectChain["submit"];

/**
 * A world in which everything is well, except for one trouble. So it can be said exactly what must happen, and when.
 * Nothing takes time, except what Fencepost waits for itself.
 */
export class Calm {
  readonly violations: string[] = [];
  readonly world: World;
  readonly dice: Dice;
  private readonly turn: number;
  readonly options: WorldOptions;
  readonly wires: WireWatch;
  /** All sends of all nodes, in order. */
  readonly sends: Sent[] = [];
  /** All events of all nodes, in order. */
  readonly events: { readonly atMs: number; readonly event: TelemetryEvent }[] = [];
  private readonly seed: number;

  constructor(seed: number, turn: number, options: WorldOptions = {}) {
    this.seed = seed;
    this.options = options;
    this.dice = new Dice(seed + LASTING_SEEDS);
    this.turn = turn;
    this.world = new World({ seed, ...options });
    this.wires = new WireWatch(this.world);
  }

  get nowMs(): number {
    return this.world.clock.monotonicMs();
  }

  /** Starts a node whose endpoint follows the script. */
  async start(script: Script = () => null, options: Parameters<World["startNode"]>[0] = {}): Promise<WorldNode> {
    const wired: { receive: ((event: TelemetryEvent) => void) | null } = { receive: null };
    const onEvent = (event: TelemetryEvent) => {
      this.events.push({ atMs: this.nowMs, event });
      wired.receive?.(event);
    };
    const entry = await this.world.startNode({ onEvent, ...options });
    const submit = entry.rpc.submit.bind(entry.rpc);
    const scripted: Submit = async (sends) => {
      const results = [];
      for (const send of sends) {
        const sent = { atMs: this.nowMs, raw: send.raw, ...this.placeOf(send.raw) };
        const said = script(sent);
        const [result] = said === null || !send.mayLeave() ? await submit([send]) : [said];
        if (result === undefined) throw new Error("an endpoint answers each send");
        if (result.answer !== "notStarted") this.sends.push({ ...sent, answer: result.answer });
        results.push(result);
      }
      return results;
    };
    Object.assign(entry.rpc, { submit: scripted });
    wired.receive = this.wires.follow(entry);
    return entry;
  }

  async create(entry: WorldNode, count: number, overrides: Partial<CreateRequest> = {}): Promise<readonly Created[]> {
    const requests = Array.from({ length: count }, () => this.request(overrides));
    return this.world.settle(Promise.all(requests.map((request) => entry.node.api.create(request))));
  }

  /** Each in turn, so that few plays of a trouble have all of them. */
  inTurn<T>(choices: readonly T[]): T {
    return choices[this.turn % choices.length] as T;
  }

  request(overrides: Partial<CreateRequest> = {}): CreateRequest {
    return transfer({ requestId: this.nextId(), ...overrides } as Parameters<typeof transfer>[0]);
  }

  /** A payload that leaves its price to the market. */
  readonly unpriced = { to: TO, value: "1", gas: 21_000 };

  sendsOf(txId: string): readonly Sent[] {
    return this.sends.filter((sent) => sent.txId === txId);
  }

  row(txId: string): TransactionRow {
    const row = this.world.database.state.transactions.get(txId);
    if (row === undefined) throw new Error(`no transaction ${txId}`);
    return row;
  }

  /** When alerts of this code were raised or resolved, in order. */
  alerts(code: string): readonly { readonly atMs: number; readonly isRaised: boolean; readonly txId: string | null }[] {
    return this.events.flatMap(({ atMs, event }) => {
      if ((event.type !== "alert" && event.type !== "alert.resolved") || event.code !== code) return [];
      return [{ atMs, isRaised: event.type === "alert", txId: event.txId ?? null }];
    });
  }

  /** Records a violation if this does not hold. */
  expect(holds: boolean, promise: string): void {
    if (!holds) this.violations.push(`${promise} (seed ${this.seed}, at ${this.nowMs} ms)`);
  }

  private ids = 0;

  private nextId(): string {
    this.ids++;
    return `calm ${this.ids}`;
  }

  private placeOf(raw: Hex): { readonly txId: string; readonly nonce: number } {
    for (const { txId, nonce, attempts } of this.world.database.state.transactions.values())
      if (nonce !== null && attempts.some(({ rawTransaction }) => rawTransaction === raw)) return { txId, nonce };
    throw new Error("bytes were sent that the database does not have");
  }
}

/** The times between each and the next. */
export function gapsOf(timesMs: readonly number[]): readonly number[] {
  return timesMs.slice(1).map((ms, index) => ms - (timesMs[index] ?? 0));
}

export const ONE: Address = SIGNER;
