/**
 * Keys of Google Cloud KMS (EC_SIGN_SECP256K1_SHA256), over its REST interface. Credentials as Google's tools find them on a
 * server: a service account's file (GOOGLE_APPLICATION_CREDENTIALS), else the metadata server of the machine or the pod.
 */
import { createSign } from "node:crypto";
import type { Clock } from "../../../../ports/clock.ts";
import { SignerAway } from "../../../../ports/signer.ts";
import { BadKey } from "../private-keys.ts";
import { readSecretFile, type Warn } from "../secret-file.ts";
import type { Environment } from "./aws-credentials.ts";
import { type KeyService, openKey, refusal } from "./key-service.ts";
import { membersOf, openServiceHttp, type ServiceHttp, type ServiceRequest, textOf } from "./service-http.ts";

const KMS = "https://cloudkms.googleapis.com/";
const SCOPE = "https://www.googleapis.com/auth/cloudkms";
const METADATA_HOST = "metadata.google.internal";
/** Renewed so long before it ends. */
const AHEAD_MS = 5 * 60_000;

interface Ports {
  readonly http: ServiceHttp;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly warn?: Warn | undefined;
}

interface Options {
  readonly clock: Clock;
  readonly environment: Environment;
  readonly warn?: Warn | undefined;
}

export async function openGcpKms(versions: readonly string[], options: Options) {
  const http = openServiceHttp(options.clock);
  const ports = { ...options, http };
  const token = accessTokens(ports);
  try {
    return {
      keys: await Promise.all(versions.map((each) => openKey(keyOf(ports, token, each)))),
      close: () => http.close(),
    };
  } catch (error) {
    await http.close();
    throw error;
  }
}

function keyOf({ http, environment }: Ports, token: () => Promise<string>, version: string): KeyService {
  const name = `Google Cloud KMS key ${version}`;
  const base = environment.CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS || KMS;
  const ask = async (request: Pick<ServiceRequest, "method" | "body">, path: string) => {
    const headers = { authorization: `Bearer ${await token()}`, "content-type": "application/json" };
    const { status, text } = await http.ask({ ...request, url: `${base}v1/${version}${path}`, headers });
    const answer = membersOf(text);
    if (status === 200) return answer;
    throw refusal(name, status, textOf((answer.error as { message?: unknown } | undefined)?.message));
  };
  return {
    name,
    publicKey: async () => textOf((await ask({ method: "GET" }, "/publicKey")).pem),
    signHash: async (hash) => {
      const body = JSON.stringify({ digest: { sha256: Buffer.from(hash).toString("base64") } });
      const { signature } = await ask({ method: "POST", body }, ":asymmetricSign");
      return Buffer.from(textOf(signature), "base64");
    },
  };
}

interface Token {
  readonly value: string;
  /** Monotonic. */
  readonly untilMs: number;
}

function accessTokens(ports: Ports): () => Promise<string> {
  let known: Promise<Token> | null = null;
  return async () => {
    const current = await known?.catch(() => null);
    if (current == null || ports.clock.monotonicMs() >= current.untilMs - AHEAD_MS) known = fetchToken(ports);
    return ((await known) as Token).value;
  };
}

async function fetchToken(ports: Ports): Promise<Token> {
  const { http, clock, environment } = ports;
  const file = environment.GOOGLE_APPLICATION_CREDENTIALS;
  const askedAtMs = clock.monotonicMs();
  const { status, text } = await http.ask(file ? await accountRequest(ports, file) : metadataRequest(environment));
  const { access_token: value, expires_in: seconds } = membersOf(text);
  if (status === 200 && typeof value === "string" && typeof seconds === "number") {
    return { value, untilMs: askedAtMs + seconds * 1_000 };
  }
  throw new SignerAway(
    `no access token for Google Cloud: ${file ? "the token endpoint" : "the metadata server"} answered ${status}`,
  );
}

function metadataRequest({ GCE_METADATA_HOST }: Environment): ServiceRequest {
  const path = "computeMetadata/v1/instance/service-accounts/default/token";
  const url = `http://${GCE_METADATA_HOST || METADATA_HOST}/${path}`;
  return { method: "GET", url, headers: { "metadata-flavor": "Google" }, timeoutMs: 2_000 };
}

/** RFC 7523: the account's own key signs that it is the account, and the endpoint that the file names gives a token for it. */
async function accountRequest({ clock, warn }: Ports, file: string): Promise<ServiceRequest> {
  const account = membersOf(await readSecretFile(file, "service account's file", warn));
  const { type, client_email: email, private_key: key, token_uri: url } = account;
  if (type !== "service_account" || typeof key !== "string" || typeof url !== "string") {
    throw new BadKey(`${file}: is not the key of a service account`);
  }
  const nowSeconds = Math.floor(clock.now().getTime() / 1_000);
  const claims = { iss: email, scope: SCOPE, aud: url, iat: nowSeconds, exp: nowSeconds + 3_600 };
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const text = `${encode({ alg: "RS256", typ: "JWT" })}.${encode(claims)}`;
  const assertion = `${text}.${createSign("RSA-SHA256").update(text).sign(key, "base64url")}`;
  const body = new URLSearchParams({ grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion }).toString();
  return { method: "POST", url, headers: { "content-type": "application/x-www-form-urlencoded" }, body };
}
