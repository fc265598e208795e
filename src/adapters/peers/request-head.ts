/**
 * `Authorization` of a request between nodes: sender, receiver and a signature. The sender's process signs (Ed25519)
 * the route, the digest of the body, both instances, the request number and its heartbeat. It contains no time: a clock
 * of a machine or of the database that is set forward or back must not split a cluster.
 */
import { createPublicKey, hash, type KeyObject, sign, verify } from "node:crypto";
import { PEER_SCHEME } from "../../contract/peer-wire.ts";

export interface RequestHead {
  /** Instance id of the node that sends the request. */
  readonly from: string;
  /**
   * Instance id of the receiver, so that a request to one node cannot be replayed to another, nor to the same one after
   * a restart.
   */
  readonly to: string;
  /** Number of the request; ascending and unique within a process. */
  readonly number: number;
  /**
   * Number of renewals of the sender's heartbeat that the sender knew of. It shows whether a request was delayed for
   * long.
   */
  readonly heartbeat: number;
  /** SHA-256 digest of the request's body. */
  readonly digest: string;
}

interface SignedHead extends RequestHead {
  readonly signature: string;
}

const HEAD = new RegExp(
  `^${PEER_SCHEME} from=([\\da-f-]{36}) to=([\\da-f-]{36}) number=(\\d{1,15}) heartbeat=(\\d{1,15}) ` +
    "digest=([\\w-]{43}) signature=([\\w-]{86})$",
);

export function digestOf(body: string | Buffer): string {
  return hash("sha256", body, "base64url");
}

/** Signs the data of a request's `Authorization` header and returns the header's value. */
export function signHead(route: string, head: RequestHead, privateKey: KeyObject): string {
  const { from, to, number, heartbeat, digest } = head;
  const signature = sign(null, signedText(route, head), privateKey).toString("base64url");
  return `${PEER_SCHEME} from=${from} to=${to} number=${number} heartbeat=${heartbeat} digest=${digest} signature=${signature}`;
}

/** Parses the `Authorization` header; null if it has another form. */
export function readHead(authorization: string | undefined): SignedHead | null {
  const [, from, to, number, heartbeat, digest, signature] = HEAD.exec(authorization ?? "") ?? [];
  if (from === undefined || to === undefined || digest === undefined || signature === undefined) return null;
  return { from, to, number: Number(number), heartbeat: Number(heartbeat), digest, signature };
}

export function isSignedBy(route: string, head: SignedHead, publicKey: KeyObject): boolean {
  return verify(null, signedText(route, head), publicKey, Buffer.from(head.signature, "base64url"));
}

/** Encodes a public key for publication: the x coordinate of RFC 8037. */
export function writePublicKey(publicKey: KeyObject): string {
  return publicKey.export({ format: "jwk" }).x ?? "";
}

/** Parses a published public key; null if the text is not a key. */
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
