import { type Address, affinity, compareLanes, type Lane, type LaneKey, laneKey } from "../lane.ts";

/** A live instance, with the facts that placement uses. */
export interface Member {
  readonly instanceId: string;
  readonly nodeId: string;
  /** URL of the member; empty if it is embedded in another process and cannot be reached. */
  readonly url: string;
  readonly mode: "basic" | "worker-queue";
  /** Chains that the member can reach now. */
  readonly chains: ReadonlySet<number>;
  readonly signers: ReadonlySet<Address>;
  /** True if the member is shutting down and accepts no lanes. */
  readonly draining: boolean;
  /**
   * True if the member recently lost its lanes because its heartbeat stopped. Placement then assigns it only lanes that
   * no other member can serve.
   */
  readonly standsBack: boolean;
  /** Signers with whose keys the member recently failed to sign; null if its release does not report them. */
  readonly keysAway: ReadonlySet<Address> | null;
}

export function serves(member: Member, lane: Lane): boolean {
  return !member.draining && member.chains.has(lane.chainId) && member.signers.has(lane.signer);
}

/** True if the member has the lane's key, even if it does not reach the chain now. */
export function holdsKey(member: Member, lane: Lane): boolean {
  return member.signers.has(lane.signer);
}

/** True if the member reports that it recently failed to sign with the lane's key. */
export function findsKeyAway({ keysAway }: Member, { signer }: Lane): boolean {
  return keysAway?.has(signer) === true;
}

export function isReachable(member: Member): boolean {
  return member.url !== "";
}

/** The members that satisfy the condition, or all members if none does. */
function preferring(isPreferred: (member: Member) => boolean, members: readonly Member[]): readonly Member[] {
  const preferred = members.filter(isPreferred);
  return preferred.length > 0 ? preferred : members;
}

/** True if the member did not recently lose its lanes because its heartbeat stopped. */
function isSteady({ standsBack }: Member) {
  return !standsBack;
}

/**
 * Assigns lanes to members. Rendezvous hashing ranks the members of each lane; the lane goes to the first that does not
 * have its fair share yet. Every node with the same members computes the same result without communication, and a
 * member that joins or leaves moves few other lanes. The result is only advice: the fence decides who writes.
 */
export function place(lanes: readonly Lane[], members: readonly Member[]): ReadonlyMap<LaneKey, Member> {
  const takers = members.filter((member) => !member.draining);
  const share = Math.ceil(lanes.length / Math.max(1, preferring(isSteady, preferring(isReachable, takers)).length));
  const load = new Map<string, number>();
  const placement = new Map<LaneKey, Member>();
  const choices = [...lanes]
    .sort(compareLanes)
    .map((lane) => ({ lane, ranked: preferring(isSteady, rank(lane, takers)) }));
  // Place lanes with the fewest candidates first. Otherwise the only holder of a key could already be full with lanes
  // that other members can serve as well.
  for (const { lane, ranked } of choices.sort((a, b) => a.ranked.length - b.ranked.length)) {
    const chosen = ranked.find((member) => (load.get(member.instanceId) ?? 0) < share) ?? ranked[0];
    if (chosen === undefined) continue;
    placement.set(laneKey(lane), chosen);
    load.set(chosen.instanceId, (load.get(chosen.instanceId) ?? 0) + 1);
  }
  return placement;
}

/**
 * Members that should serve the lane, the preferred one first. Ranked by node id, so that a restarted node has the same
 * rank.
 */
export function rank(lane: Lane, members: readonly Member[]): readonly Member[] {
  const key = laneKey(lane);
  const servants = ableToSign(
    lane,
    members.filter((member) => serves(member, lane)),
  );
  // Members without a URL come last: other nodes cannot forward requests to them.
  return preferring(isReachable, servants)
    .map((member) => ({ member, score: affinity(key, member.nodeId) }))
    .sort(
      (a, b) =>
        Number(a.member.standsBack) - Number(b.member.standsBack) ||
        b.score - a.score ||
        (a.member.instanceId < b.member.instanceId ? -1 : 1),
    )
    .map(({ member }) => member);
}

/**
 * Members that have not marked the lane's key as unavailable; all members if every one has marked it. The marks count
 * only if all members report them: a member of an older release would not take the lanes that others leave to it.
 */
function ableToSign(lane: Lane, servants: readonly Member[]): readonly Member[] {
  if (servants.some(({ keysAway }) => keysAway === null)) return servants;
  return preferring((member) => !findsKeyAway(member, lane), servants);
}

/** Every lane that some live member can serve. */
export function servedLanes(members: readonly Member[]): readonly Lane[] {
  const lanes = new Map<LaneKey, Lane>();
  for (const member of members) {
    for (const chainId of member.chains) {
      for (const signer of member.signers) lanes.set(laneKey({ chainId, signer }), { chainId, signer });
    }
  }
  return [...lanes.values()];
}

/** The member that raises alerts about the whole cluster, so that each is raised once; null if there is no member. */
export function alertingMember(members: readonly Member[]): Member | null {
  // A member that shuts down could not report the end. One without a URL is a library, whose process may have no sink.
  const lasting = preferring(({ draining }) => !draining, members);
  return preferring(isReachable, lasting)[0] ?? null;
}

/** Why none of the live members owns the lane. */
export function whyUnowned(lane: Lane, members: readonly Member[]): string {
  const holders = members.filter((member) => holdsKey(member, lane));
  if (holders.length === 0) return "no live node holds its key";
  const staying = holders.filter(({ draining }) => !draining);
  if (staying.length === 0) return `every node that holds its key is shutting down (${namesOf(holders)})`;
  const able = staying.filter((member) => serves(member, lane));
  if (able.length === 0) return `no node that holds its key reaches chain ${lane.chainId} (${namesOf(staying)})`;
  return `a node could own it and has not taken it (${namesOf(able)})`;
}

const MOST_NAMES = 3;

function namesOf(members: readonly Member[]) {
  const names = members.map(({ nodeId }) => nodeId).toSorted();
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : "";
  return `${names.slice(0, MOST_NAMES).join(", ")}${more}`;
}
