import { type Address, type Hex, type LaneKey, laneKey } from "../../../src/domain/lane.ts";
import { isSpent } from "../../../src/domain/ledger/index.ts";
import type { MessageToSign } from "../../../src/domain/messages/message.ts";
import type { SignatureRecord, SignatureState } from "../../../src/domain/messages/record.ts";
import { hourOf } from "../../../src/domain/policy/use.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { SignerAway, SigningRefused } from "../../../src/ports/signer.ts";
import type { LaneRow } from "../../doubles/memory-store/state.ts";
import type { World, WorldNode } from "../world.ts";
import { MOST_TIGHT, type Wanted, WINDOWS } from "./message-kinds.ts";
import type { Stops } from "./stops.ts";

const MAY_BECOME: Readonly<Record<SignatureState, readonly SignatureState[]>> = {
  AWAITING_APPROVAL: ["ALLOWED", "REJECTED", "EXPIRED"],
  ALLOWED: ["SIGNED"],
  SIGNED: [],
  REJECTED: [],
  EXPIRED: [],
};
const IN_USE: readonly SignatureState[] = ["ALLOWED", "SIGNED"];

/**
 * Checks signatures of messages at the key holder, at every commit, and at every answer: committed first under the
 * present token, within bounds and windows, none after a stop, and one signature per request.
 */
export class SignatureWatch {
  readonly violations: string[] = [];
  readonly counts = new Map<string, number>();
  /** Everything that was asked for, by signer and request id. */
  readonly wanted = new Map<string, Wanted>();
  /** Approvals and rejections that somebody asked for, by signature id. */
  readonly decisions = new Map<string, Set<string>>();
  /** Since when the tight policies are certainly in force; null if others may be. */
  tightSince: Date | null = null;
  private readonly world: World;
  private readonly dice: Dice;
  private readonly stops: Stops;
  private readonly known = new Map<LaneKey, ReadonlyMap<string, SignatureRecord>>();
  /** Signatures that a key holder made, with their digests. */
  private readonly made = new Map<Hex, Hex>();

  constructor(world: World, dice: Dice, stops: Stops) {
    this.world = world;
    this.dice = dice;
    this.stops = stops;
  }

  /** Puts this node's key holder under watch. It is slow at times, loses answers, and never signs the same bytes twice. */
  follow(node: WorldNode): void {
    const sign = node.signer.signMessages.bind(node.signer);
    node.signer.signMessages = async (address: Address, messages: readonly MessageToSign[], term = 0) => {
      for (const each of messages) this.asked(node, address, { ...each, term });
      await sign(address, messages);
      if (this.dice.chance(0.5)) await this.world.clock.sleep(this.dice.int(1, 600));
      const refused = messages.findIndex(({ digest }) => digest.endsWith("7"));
      if (refused !== -1) throw new SigningRefused(refused, "it is against the rules");
      const made = messages.map(({ digest }) => this.make(address, digest));
      if (this.dice.chance(0.1)) throw new SignerAway("the answer of the key service was lost");
      return made;
    };
  }

  /** Checks an answer of this node, at the moment in which it leaves. */
  answers(node: WorldNode, signer: Address): void {
    const stop = this.stops.forbids(signer, node);
    if (stop !== null) this.violations.push(`${node.url} answered with a signature after the stop of ${stop}`);
  }

  /** Checks the lane's signatures after a commit about them. */
  committed(lane: LaneRow): void {
    const before = this.known.get(laneKey(lane.lane)) ?? new Map<string, SignatureRecord>();
    const records = recordsOf(lane);
    for (const record of records) {
      const earlier = before.get(record.signatureId);
      if (earlier !== record) this.changed(earlier, record);
    }
    this.known.set(laneKey(lane.lane), new Map(records.map((each) => [each.signatureId, each])));
    if (records.length < before.size) this.violations.push("a signature was forgotten");
    for (const rule of Object.keys(WINDOWS) as (keyof typeof WINDOWS)[]) this.checkWindow(lane, rule, records);
  }

  /** A caller got this signature: it must be the one that is kept, made by the key holder for this digest. */
  answered(signer: Address, requestId: string, given: { readonly signature: Hex | null; readonly digest: Hex }): void {
    const { signature, digest } = given;
    const found = this.world.database.state
      .signatures()
      .find((each) => each.lane.signer === signer && each.requestId === requestId);
    const isKept = found?.signature === signature && found.digest === digest && found.state === "SIGNED";
    if (!isKept) this.violations.push(`${requestId} was answered ${signature}, and ${found?.signature} is kept`);
    if (signature === null || this.made.get(signature) !== digest)
      this.violations.push(`no key holder made the signature of ${requestId}`);
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  private asked(
    node: WorldNode,
    signer: Address,
    { chainId, digest, term }: MessageToSign & { readonly term: number },
  ): void {
    const { state } = this.world.database;
    const row = state.lane({ chainId, signer });
    const record = row && recordsOf(row).find((each) => each.digest === digest);
    const owner = state.instances.get(row?.owner ?? "");
    const complain = (why: string) => this.violations.push(`${node.url} has ${record?.requestId} signed ${why}`);
    if (record === undefined || !IN_USE.includes(record.state))
      complain(`although it is ${record?.state ?? "unknown"}`);
    if (owner?.url === node.url && term !== row?.token) complain(`under token ${term}, not ${row?.token}`);
    const lives = [...state.instances.values()].filter(({ url }) => url === node.url);
    if (!lives.some(({ expiresAt }) => expiresAt > this.world.clock.now())) complain("after its deadline");
    const stop = this.stops.forbids(signer, node);
    if (stop !== null) complain(`after the stop of ${stop} was answered`);
    this.count("signature made");
  }

  private make(address: Address, digest: Hex): Hex {
    const signature: Hex = `0x${address.slice(2).padStart(64, "0")}${String(this.made.size).padStart(64, "0")}1b`;
    this.made.set(signature, digest);
    return signature;
  }

  private changed(before: SignatureRecord | undefined, after: SignatureRecord): void {
    const { requestId, state, decision, createdAt } = after;
    const wanted = this.wanted.get(`${after.lane.signer} ${requestId}`);
    const complain = (why: string) => this.violations.push(`${requestId} is ${state} ${why}`);
    if (wanted === undefined || wanted.verdict === "never") complain("although no rule allows it");
    if (before !== undefined) {
      if (!MAY_BECOME[before.state].includes(state)) complain(`after ${before.state}`);
      if (before.digest !== after.digest || before.owner !== after.owner) complain("with another content");
    }
    const wasAwaiting = before === undefined || before.state === "AWAITING_APPROVAL";
    if (state === "ALLOWED" && wasAwaiting) {
      if (wanted?.verdict === "approval" && decision === null) complain("although nobody approved it");
      this.checkTight(wanted, decision?.at ?? createdAt, complain);
    }
    if (decision !== null && before?.decision === null) this.checkDecision(after, complain);
    if (state === "SIGNED" && this.made.get(after.signature ?? "0x") !== after.digest) complain("by no key holder");
    this.count(`signature ${state}`);
  }

  private checkTight(wanted: Wanted | undefined, at: Date, complain: (why: string) => void) {
    if (wanted === undefined || this.tightSince === null || at < this.tightSince) return;
    if (
      wanted.kind === "greeting" ||
      wanted.kind === "signIn" ||
      (wanted.kind === "permit" && wanted.value > MOST_TIGHT)
    )
      complain("although its rule is gone");
  }

  private checkDecision({ signatureId, state, decision, expiresAt }: SignatureRecord, complain: (why: string) => void) {
    const asked = this.decisions.get(signatureId);
    const action = state === "REJECTED" ? "reject" : "approve";
    if (asked?.has(action) !== true) complain("although nobody decided that");
    if (decision !== null && expiresAt !== null && decision.at >= expiresAt) complain("after its time was over");
  }

  /** What a rule has counted in this hour equals the signatures that are committed, and is within its limits. */
  private checkWindow(
    { ledger, lane }: LaneRow,
    rule: keyof typeof WINDOWS,
    records: readonly SignatureRecord[],
  ): void {
    const use = ledger.messageUse.get(rule);
    const hourMs = use?.hourMs ?? 0;
    const counted = records.filter((each) => each.rule === rule && IN_USE.includes(each.state));
    const inHour = counted.filter(
      ({ decision, createdAt }) => hourOf((decision?.at ?? createdAt).getTime()) === hourMs,
    );
    const amount = inHour.reduce((sum, each) => sum + each.amount, 0n);
    const real = { amount, signatures: inHour.length };
    const said = use?.hour ?? { amount: 0n, signatures: 0 };
    const place = `${rule} of ${lane.signer}`;
    if (said.amount !== amount || said.signatures !== real.signatures)
      this.violations.push(
        `${place} has ${real.signatures} of ${amount}, and counts ${said.signatures} of ${said.amount}`,
      );
    const most = WINDOWS[rule];
    if (real.signatures > most.signatures || (most.amount !== null && amount > most.amount))
      this.violations.push(`${place} has ${real.signatures} of ${amount}, above its limits`);
    const sum = counted.reduce((total, { requestId }) => total + this.valueOf(lane.signer, requestId), 0n);
    if (sum !== counted.reduce((total, each) => total + each.amount, 0n))
      this.violations.push(`${place} counts other amounts than its messages have`);
  }

  private valueOf(signer: Address, requestId: string) {
    return this.wanted.get(`${signer} ${requestId}`)?.value ?? 0n;
  }
}

function recordsOf({ ledger }: LaneRow): readonly SignatureRecord[] {
  return ledger.messages.every().flatMap(([, each]) => (isSpent(each) ? [] : each));
}
