/** Fakes of the key services AWS KMS, Google Cloud KMS and Vault with real keys, as far as a signer uses them. */
import { createECDH, createHash, createHmac, createPublicKey, createVerify, type KeyObject } from "node:crypto";
import type { Hex } from "../../src/domain/lane.ts";
import { type ServiceHandler, type ServiceRequest, startServiceServer } from "./service-server.ts";

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * Signs with a new random number each time, as key services do. It does not bring `s` into the lower half of the
 * curve's order, so about every second `s` is above it.
 */
export function derSignature(privateKey: Hex, hash: Hex): Buffer {
  const drawn = createECDH("secp256k1");
  const r = BigInt(`0x${drawn.generateKeys("hex").slice(2, 66)}`) % ORDER;
  const k = BigInt(`0x${drawn.getPrivateKey("hex")}`);
  const s = (inverse(k) * (BigInt(hash) + r * BigInt(privateKey))) % ORDER;
  const body = Buffer.concat([derInteger(r), derInteger(s)]);
  return Buffer.concat([Buffer.of(0x30, body.length), body]);
}

/** Modular inverse by Fermat's little theorem: k to the power of n − 2. */
function inverse(k: bigint): bigint {
  let [result, base] = [1n, k];
  for (let exponent = ORDER - 2n; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * base) % ORDER;
    base = (base * base) % ORDER;
  }
  return result;
}

/** A DER integer: as short as possible and never negative. */
function derInteger(value: bigint): Buffer {
  const digits = value.toString(16);
  const bytes = Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex");
  const positive = (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
  return Buffer.concat([Buffer.of(2, positive.length), positive]);
}

export function publicKeyOf(privateKey: Hex): KeyObject {
  const curve = createECDH("secp256k1");
  curve.setPrivateKey(Buffer.from(privateKey.slice(2), "hex"));
  const point = curve.getPublicKey();
  const part = (from: number) => point.subarray(from, from + 32).toString("base64url");
  return createPublicKey({ format: "jwk", key: { kty: "EC", crv: "secp256k1", x: part(1), y: part(33) } });
}

export const AWS_KEY = { id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };

/** A fake AWS KMS with these keys by id. It checks the request's signature as AWS does, from the received bytes. */
export function startAwsKms(keys: Readonly<Record<string, Hex>>) {
  const handler: ServiceHandler = async (request) => {
    const refuse = (status: number, type: string, message: string) => ({ status, body: { __type: type, message } });
    if (!isSignedForAws(request))
      return refuse(400, "InvalidSignatureException", "The request signature we calculated does not match");
    const members = JSON.parse(request.body) as Record<string, string>;
    const key = keys[members.KeyId ?? ""];
    if (key === undefined)
      return refuse(400, "com.amazonaws.kms#NotFoundException", `Key '${members.KeyId}' does not exist`);
    if (request.headers["x-amz-target"] === "TrentService.GetPublicKey") {
      const der = publicKeyOf(key).export({ format: "der", type: "spki" });
      return { body: { KeyId: members.KeyId, PublicKey: der.toString("base64"), KeySpec: "ECC_SECG_P256K1" } };
    }
    if (members.MessageType !== "DIGEST" || members.SigningAlgorithm !== "ECDSA_SHA_256") {
      return refuse(400, "ValidationException", "not for this key");
    }
    const hash: Hex = `0x${Buffer.from(members.Message ?? "", "base64").toString("hex")}`;
    const der = derSignature(key, hash);
    return { body: { KeyId: members.KeyId, Signature: der.toString("base64"), SigningAlgorithm: "ECDSA_SHA_256" } };
  };
  return startServiceServer(handler);
}

function isSignedForAws({ headers, path, body }: ServiceRequest): boolean {
  const said = /Credential=([^/]+)\/(\d+)\/([\w-]+)\/(\w+)\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)/.exec(
    headers.authorization ?? "",
  );
  const [, id, date = "", region = "", service = "", names = "", signature] = said ?? [];
  if (id !== AWS_KEY.id || service !== "kms" || !names.includes("x-amz-target")) return false;
  const lines = names
    .split(";")
    .map((name) => `${name}:${headers[name]}\n`)
    .join("");
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");
  const canonical = `POST\n${path}\n\n${lines}\n${names}\n${hash(body)}`;
  const text = `AWS4-HMAC-SHA256\n${headers["x-amz-date"]}\n${date}/${region}/${service}/aws4_request\n${hash(canonical)}`;
  const mac = (key: string | Buffer, message: string) => createHmac("sha256", key).update(message).digest();
  const key = mac(mac(mac(mac(`AWS4${AWS_KEY.secret}`, date), region), service), "aws4_request");
  return mac(key, text).toString("hex") === signature;
}

export interface GcpOptions {
  /** Private keys, by the full name of the key version. */
  readonly keys: Readonly<Record<string, Hex>>;
  /** Credentials of the service account that may request tokens. */
  readonly account: KeyObject;
}

/** The key service, the token endpoint and the metadata server under one address. */
export function startGcpKms({ keys, account }: GcpOptions) {
  let tokens = 0;
  const handler: ServiceHandler = async ({ method, path, headers, body }) => {
    const refuse = (status: number, message: string) => ({ status, body: { error: { code: status, message } } });
    const token = () => ({ body: { access_token: `ya29.${++tokens}`, expires_in: 3_600, token_type: "Bearer" } });
    if (path === "/token") return isAccount(body, account) ? token() : refuse(400, "invalid_grant");
    if (path.startsWith("/computeMetadata/"))
      return headers["metadata-flavor"] === "Google" ? token() : refuse(403, "");
    if (!/^Bearer ya29\.\d+$/.test(headers.authorization ?? ""))
      return refuse(401, "invalid authentication credentials");
    const [, name = "", action] = /^\/v1\/(projects\/.+?)(\/publicKey|:asymmetricSign)$/.exec(path) ?? [];
    const key = keys[name];
    if (key === undefined) return refuse(404, `CryptoKeyVersion ${name} not found.`);
    if (action === "/publicKey" && method === "GET") {
      const pem = publicKeyOf(key).export({ format: "pem", type: "spki" });
      return { body: { pem, algorithm: "EC_SIGN_SECP256K1_SHA256", name } };
    }
    const { digest } = JSON.parse(body) as { digest: { sha256: string } };
    const hash: Hex = `0x${Buffer.from(digest.sha256, "base64").toString("hex")}`;
    return { body: { signature: derSignature(key, hash).toString("base64"), name } };
  };
  return startServiceServer(handler);
}

function isAccount(body: string, account: KeyObject): boolean {
  const [header = "", claims = "", signature = ""] = (new URLSearchParams(body).get("assertion") ?? "").split(".");
  const { iss, scope, exp, iat } = JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<string, unknown>;
  const isWhole = iss === "relay@project.iam.gserviceaccount.com" && String(scope).endsWith("/auth/cloudkms");
  const verify = createVerify("RSA-SHA256").update(`${header}.${claims}`);
  return isWhole && Number(exp) - Number(iat) <= 3_600 && verify.verify(account, signature, "base64url");
}
