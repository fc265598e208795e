/**
 * The live instances of this database, with the public keys that they publish: requests are sent only to them, and
 * accepted only from them. The data comes from the heartbeat rows that the lease reads anyway; an unknown instance is
 * looked up once more.
 *
 * An attacker who can write those rows could publish a key. Against that, nodes may share a secret outside the
 * database: then a row counts only if its proof covers key, instance and URL.
 */
import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../ports/clock.ts";
import type { InstanceKey, InstanceRecord } from "../../ports/lease-store.ts";
import { readPublicKey, writePublicKey } from "./request-head.ts";

export interface DirectoryOptions {
  readonly keys: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  /**
   * Secrets that nodes share outside the database. The first one is used to prove this process's public key. Proofs of
   * other nodes may use any of them. Empty: public keys in the database are trusted without proof.
   */
  readonly secrets: readonly string[];
  readonly readInstances: () => Promise<readonly InstanceRecord[]>;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** Another process of the cluster, identified by one of its instances. */
interface KnownPeer extends Pick<InstanceRecord, "instanceId" | "url"> {
  /** Public key of the peer; null if it has published no readable key. */
  readonly key: KeyObject | null;
  /** True if the proof in the instance's row matches a shared secret, or if no secret is configured. */
  readonly isVouchedFor: boolean;
  /** Marks a request number as used. False if it was used before, or is too old to be remembered. */
  readonly use: (number: number) => boolean;
  readonly published: string;
  isLive: boolean;
  heartbeat: number;
}

/** Number of own instance ids to keep: requests in flight may still name an earlier registration of this process. */
const SELVES = 16;
/** Minimum pause between reads of the instances, so that unauthenticated requests cannot load the database. */
const READ_EVERY_MS = 100;

export type PeerDirectory = ReturnType<typeof peerDirectory>;

export function peerDirectory({ keys, secrets, readInstances, clock }: DirectoryOptions) {
  const publicKey = writePublicKey(keys.publicKey);
  const known = new Map<string, KnownPeer>();
  let byUrl: ReadonlyMap<string, KnownPeer> = new Map();
  let selves: readonly string[] = [];
  let reading: Promise<void> | null = null;
  let readAtMs: number | null = null;

  const learn = ({ instanceId, url, publicKey, keyProof, counter: heartbeat, expired }: InstanceRecord) => {
    const before = known.get(instanceId);
    const published = JSON.stringify([url, publicKey, keyProof]);
    const now = { isLive: !expired, heartbeat };
    if (before?.published === published) return void Object.assign(before, now);
    const claim = { instanceId, url, publicKey: publicKey ?? "" };
    known.set(instanceId, {
      ...{ instanceId, url, published, ...now },
      key: publicKey === null ? null : readPublicKey(publicKey),
      isVouchedFor: isProven(claim, keyProof ?? "", secrets),
      use: before?.use ?? usedNumbers(),
    });
  };

  const know = (instances: readonly InstanceRecord[]) => {
    const undead = instances.filter(({ dead }) => !dead);
    // Keep expired instances' used request numbers: if the database's clock is set back, no request may be replayed.
    for (const id of known.keys()) if (!undead.some(({ instanceId }) => instanceId === id)) known.delete(id);
    undead.forEach(learn);
    const live = undead.flatMap(({ instanceId, expired }) => (expired ? [] : (known.get(instanceId) ?? [])));
    // If several live instances have the same URL, the last one is used. They are sorted: trusted instances come last,
    // and newer after older.
    const trustedLast = live.toSorted((a, b) => Number(isTrusted(a)) - Number(isTrusted(b)));
    byUrl = new Map(trustedLast.map((each) => [each.url, each]));
  };

  const lookAgain = async () => {
    const nowMs = clock.monotonicMs();
    if (reading === null && (readAtMs === null || nowMs - readAtMs >= READ_EVERY_MS)) {
      readAtMs = nowMs;
      const read = readInstances().then(know);
      reading = read.finally(() => {
        reading = null;
      });
    }
    await reading;
  };

  return {
    know,
    introduce: (instanceId: string, url: string): InstanceKey => {
      selves = [...selves, instanceId].slice(-SELVES);
      const [secret] = secrets;
      return { publicKey, keyProof: secret === undefined ? null : proofOf(secret, { instanceId, url, publicKey }) };
    },
    isUs: (instanceId: string) => selves.includes(instanceId),
    /** This process's newest instance among the rows read from the database; other nodes can find it there too. */
    self: () => selves.flatMap((instanceId) => known.get(instanceId) ?? []).at(-1) ?? null,
    /** Returns the live instance at the URL; null if there is none. Throws if the rows cannot be read. */
    at: async (url: string) => {
      const found = byUrl.get(url);
      if (found === undefined || !isTrusted(found)) await lookAgain();
      return byUrl.get(url) ?? null;
    },
    /** Returns the instance with this id; null if it is dead or unknown. Throws if the rows cannot be read. */
    find: async (instanceId: string) => {
      if (!known.has(instanceId)) await lookAgain();
      const found = known.get(instanceId);
      return found?.isLive === true ? found : null;
    },
  };
}

function isTrusted({ key, isVouchedFor }: KnownPeer) {
  return key !== null && isVouchedFor;
}

type Claim = Pick<InstanceRecord, "instanceId" | "url"> & { readonly publicKey: string };

/**
 * Proof of an instance's key. It covers the URL: otherwise a key copied into another row would attract requests to that
 * row's URL.
 */
function proofOf(secret: string, { instanceId, url, publicKey }: Claim) {
  const claim = `fencepost instance key 1\n${instanceId}\n${url}\n${publicKey}\n`;
  return createHmac("sha256", secret).update(claim).digest("base64url");
}

function isProven(claim: Claim, proof: string, secrets: readonly string[]) {
  return secrets.length === 0 || secrets.some((secret) => isSame(proofOf(secret, claim), proof));
}

function isSame(a: string, b: string) {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/**
 * Number of later requests that may overtake a request of the same sender. Enough for the requests of many seconds;
 * takes 64 KiB of memory per sender.
 */
const OVERTAKEN_AT_MOST = 8_192;

/**
 * Remembers the request numbers that one sender has used. Memory is limited: a number that was overtaken by too many
 * later ones is refused.
 */
function usedNumbers() {
  const slots = new Float64Array(OVERTAKEN_AT_MOST);
  return (number: number) => {
    const slot = number % OVERTAKEN_AT_MOST;
    if ((slots[slot] ?? 0) >= number) return false;
    slots[slot] = number;
    return true;
  };
}
