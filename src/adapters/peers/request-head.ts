/**
 * The head of a request between nodes: who asks whom, and that it is so. Signed with the private key of the sender's process
 * (Ed25519) over the route, the digest of the body, both instances, the number of the request and the sender's heartbeat. No
 * time stands in it: a clock that is set forward or back, a machine's or the database's, must not part a cluster.
 */
import { createPublicKey, hash, type KeyObject, sign, verify } from "node:crypto";
import { PEER_SCHEME } from "../../contract/peer-wire.ts";

export interface RequestHead {
  /** Instance of the sender. */
  readonly from: string;
  /** Instance of the receiver: what was sent to one node cannot be shown to another, nor to the same one after a restart. */
  readonly to: string;
  /** Each of a process once, ascending. */
  readonly number: number;
  /** How often the sender's heartbeat was renewed, as far as it knew: what is held back for long can be told by it. */
  readonly heartbeat: number;
  /** Of the body. */
  readonly digest: string;
}

export interface SignedHead extends RequestHead {
  readonly signature: string;
}

const HEAD = new RegExp(
  `^${PEER_SCHEME} from=([\\da-f-]{36}) to=([\\da-f-]{36}) number=(\\d{1,15}) heartbeat=(\\d{1,15}) ` +
    "digest=([\\w-]{43}) signature=([\\w-]{86})$",
);

export function digestOf(body: string | Buffer): string {
  return hash("sha256", body, "base64url");
}

/** The value of the header `Authorization`. */
export function signHead(route: string, head: RequestHead, privateKey: KeyObject): string {
  const { from, to, number, heartbeat, digest } = head;
  const signature = sign(null, signedText(route, head), privateKey).toString("base64url");
  return `${PEER_SCHEME} from=${from} to=${to} number=${number} heartbeat=${heartbeat} digest=${digest} signature=${signature}`;
}

/** Null: this is no such head. */
export function readHead(authorization: string | undefined): SignedHead | null {
  const [, from, to, number, heartbeat, digest, signature] = HEAD.exec(authorization ?? "") ?? [];
  if (from === undefined || to === undefined || digest === undefined || signature === undefined) return null;
  return { from, to, number: Number(number), heartbeat: Number(heartbeat), digest, signature };
}

export function isSignedBy(route: string, head: SignedHead, publicKey: KeyObject): boolean {
  return verify(null, signedText(route, head), publicKey, Buffer.from(head.signature, "base64url"));
}

/** As an instance publishes it: the x coordinate of RFC 8037. */
export function writePublicKey(publicKey: KeyObject): string {
  return publicKey.export({ format: "jwk" }).x ?? "";
}

/** Null: this is no key. */
export function readPublicKey(x: string): KeyObject | null {
  try {
    return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  } catch {
    return null;
  }
}

function signedText(route: string, { from, to, number, heartbeat, digest }: RequestHead): Buffer {
  return Buffer.from(`fencepost peer request 1\nPOST ${route}\n${from}\n${to}\n${number}\n${heartbeat}\n${digest}\n`);
}
