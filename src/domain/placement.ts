import { type Address, compareLanes, type Lane, type LaneKey, laneKey } from "./lane.ts";
import { affinity } from "./rendezvous.ts";

/** A live instance, as far as placing lanes is concerned. */
export interface Member {
  readonly instanceId: string;
  readonly nodeId: string;
  /** Empty: it is embedded in another process, and no request can reach it. */
  readonly url: string;
  readonly mode: "basic" | "worker-queue";
  /** Chains it reaches right now. */
  readonly chains: ReadonlySet<number>;
  readonly signers: ReadonlySet<Address>;
  /** It is shutting down: it takes no lane any more. */
  readonly draining: boolean;
  /** It lost its lanes because it was silent: it takes only lanes that no other member serves. */
  readonly standsBack: boolean;
  /** Of its signers, those whose key it could not sign with; null: its release does not say. */
  readonly keysAway: ReadonlySet<Address> | null;
}

export function serves(member: Member, lane: Lane): boolean {
  return !member.draining && member.chains.has(lane.chainId) && member.signers.has(lane.signer);
}

/** The key is there, whatever the member reaches right now. */
export function holdsKey(member: Member, lane: Lane): boolean {
  return member.signers.has(lane.signer);
}

/** It says that it could not sign with the key. */
export function findsKeyAway({ keysAway }: Member, { signer }: Lane): boolean {
  return keysAway?.has(signer) === true;
}

export function isReachable(member: Member): boolean {
  return member.url !== "";
}

/** Those members, or all where there are none such. */
function preferring(isPreferred: (member: Member) => boolean, members: readonly Member[]): readonly Member[] {
  const preferred = members.filter(isPreferred);
  return preferred.length > 0 ? preferred : members;
}

/** It did not lose its lanes because it was silent. */
function isSteady({ standsBack }: Member): boolean {
  return !standsBack;
}

/**
 * Which member should own which lane: each lane's favourite by rendezvous hashing, passed over where it has its fair
 * share already. Every node that sees the same members computes the same answer, so they need not ask each other, and a member
 * that joins or leaves moves few lanes beside its own. It is advice: the fence, not the placement, decides who writes.
 */
export function place(lanes: readonly Lane[], members: readonly Member[]): ReadonlyMap<LaneKey, Member> {
  const takers = members.filter((member) => !member.draining);
  const share = Math.ceil(lanes.length / Math.max(1, preferring(isSteady, preferring(isReachable, takers)).length));
  const load = new Map<string, number>();
  const placement = new Map<LaneKey, Member>();
  const choices = [...lanes]
    .sort(compareLanes)
    .map((lane) => ({ lane, ranked: preferring(isSteady, rank(lane, takers)) }));
  // Lanes with the least choice first: else the only holder of a key could be full of lanes that others can serve, too.
  for (const { lane, ranked } of choices.sort((a, b) => a.ranked.length - b.ranked.length)) {
    const chosen = ranked.find((member) => (load.get(member.instanceId) ?? 0) < share) ?? ranked[0];
    if (chosen === undefined) continue;
    placement.set(laneKey(lane), chosen);
    load.set(chosen.instanceId, (load.get(chosen.instanceId) ?? 0) + 1);
  }
  return placement;
}

/** Members that should serve the lane, favourite first. By node id, so that a node that restarts is favoured as before. */
export function rank(lane: Lane, members: readonly Member[]): readonly Member[] {
  const key = laneKey(lane);
  const servants = ableToSign(
    lane,
    members.filter((member) => serves(member, lane)),
  );
  // A request may arrive at any node and is forwarded to the owner, so members without a URL come last.
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
 * Those that do not find the key away, or all where there are none such. A member of a release without such marks places lanes
 * without them: it would not take what others leave to it, so marks count only among members that all have them.
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
