/** The holes of the lanes in a commit, as they stand after what was planned so far. Written once, as the difference. */
import { type Hole, type HoleCause, isFree } from "../../../domain/holes.ts";
import { type LaneKey, laneKey } from "../../../domain/lane.ts";
import { laneOf } from "../columns.ts";
import { deleteHoles, type HoleRow, writeHoles } from "../statements/hole.ts";
import type { Command } from "../statements/statement.ts";
import type { LanePlan } from "./plan.ts";

export function holeOf(row: HoleRow): Hole {
  return {
    nonce: row.nonce,
    why: row.why as HoleCause,
    detail: row.detail,
    since: row.since,
    reservationId: row.reservation_id,
  };
}

interface LaneHoles {
  readonly lane: LanePlan["row"];
  readonly before: ReadonlyMap<number, Hole>;
  readonly after: Map<number, Hole>;
}

export class HoleBook {
  private readonly found: readonly HoleRow[];
  private readonly lanes = new Map<LaneKey, LaneHoles>();

  constructor(found: readonly HoleRow[]) {
    this.found = found;
  }

  /** Takes the lowest of these nonces that is free, or this very hole; null where there is none. */
  takeFree(lane: LanePlan, nonces: readonly number[], floor: number): Hole | null {
    const { after } = this.of(lane);
    const fitting = nonces.flatMap((nonce) => after.get(nonce) ?? []).filter(isFree);
    const [lowest] = fitting.filter(({ nonce }) => nonce >= floor).sort((a, b) => a.nonce - b.nonce);
    return lowest === undefined ? null : this.take(lane, lowest.nonce);
  }

  /** A hole now, or when this commit began: whoever took it has it. */
  knew(lane: LanePlan, nonce: number): boolean {
    const { before, after } = this.of(lane);
    return before.has(nonce) || after.has(nonce);
  }

  /** Free or not; null where it is no hole. */
  take(lane: LanePlan, nonce: number): Hole | null {
    const { after } = this.of(lane);
    const hole = after.get(nonce) ?? null;
    after.delete(nonce);
    return hole;
  }

  /** The cursor goes back: what is at or above it was never given out. */
  forgetFrom(lane: LanePlan, nonce: number): void {
    const { after } = this.of(lane);
    for (const each of [...after.keys()]) if (each >= nonce) after.delete(each);
  }

  leave(lane: LanePlan, hole: Hole): void {
    this.of(lane).after.set(hole.nonce, hole);
  }

  commands(): readonly Command[] {
    const closed: { chain_id: number; signer: string; nonce: number }[] = [];
    const opened: object[] = [];
    for (const { lane, before, after } of this.lanes.values()) {
      const key = { chain_id: lane.chain_id, signer: lane.signer };
      for (const [nonce, hole] of before) if (after.get(nonce) !== hole) closed.push({ ...key, nonce });
      for (const [nonce, hole] of after) if (before.get(nonce) !== hole) opened.push({ ...key, ...holeRow(hole) });
    }
    return [
      ...(closed.length === 0 ? [] : [closing(closed)]),
      ...(opened.length === 0 ? [] : [{ statement: writeHoles, values: [JSON.stringify(opened)] }]),
    ];
  }

  private of(lane: LanePlan): LaneHoles {
    const key = laneKey(laneOf(lane.row));
    const known = this.lanes.get(key);
    if (known !== undefined) return known;
    const rows = this.found.filter((row) => row.chain_id === lane.row.chain_id && row.signer === lane.row.signer);
    const before = new Map(rows.map((row) => [row.nonce, holeOf(row)]));
    const holes = { lane: lane.row, before, after: new Map(before) };
    this.lanes.set(key, holes);
    return holes;
  }
}

function holeRow({ nonce, why, detail, reservationId }: Hole) {
  return { nonce, why, detail, reservation_id: reservationId };
}

function closing(closed: readonly { chain_id: number; signer: string; nonce: number }[]): Command {
  const distinct = <T>(values: readonly T[]) => [...new Set(values)];
  const signers = distinct(closed.map(({ signer }) => signer));
  const chains = distinct(closed.map(({ chain_id }) => chain_id));
  const nonces = distinct(closed.map(({ nonce }) => nonce));
  return { statement: deleteHoles, values: [JSON.stringify(closed), signers, chains, nonces, closed.length] };
}
