/**
 * Signs with keys of Google Cloud KMS (EC_SIGN_SECP256K1_SHA256), over its REST interface. Credentials are found as
 * Google's tools find them on a server: in a service account's file (GOOGLE_APPLICATION_CREDENTIALS), else from the
 * metadata server of the machine or pod.
 */
import { createSign } from "node:crypto";
import { BadKey, readSecretFile } from "../private-keys.ts";
import {
  type Environment,
  type KeyService,
  membersOf,
  openKeys,
  refusal,
  renewed,
  type ServicePorts,
  type ServiceRequest,
  type SignerPorts,
  textOf,
} from "./key-service.ts";

const KMS = "https://cloudkms.googleapis.com/";
const SCOPE = "https://www.googleapis.com/auth/cloudkms";
const METADATA_HOST = "metadata.google.internal";

export function openGcpKms(versions: readonly string[], ports: SignerPorts) {
  return openKeys(ports, (service) => {
    const token = renewed(ports.clock, () => fetchToken(service));
    return versions.map((each) => keyOf(service, token, each));
  });
}

function keyOf({ http, environment }: ServicePorts, token: () => Promise<Token>, version: string): KeyService {
  const name = `Google Cloud KMS key ${version}`;
  const base = environment.CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS || KMS;
  const ask = async (path: string, request: Pick<ServiceRequest, "method" | "body"> = {}) => {
    const headers = { authorization: `Bearer ${(await token()).value}`, "content-type": "application/json" };
    const { status, members } = await http.ask({ ...request, url: `${base}v1/${version}${path}`, headers });
    if (status === 200) return members;
    throw refusal(name, status, textOf(Object(members.error).message));
  };
  return {
    name,
    publicKey: async () => textOf((await ask("/publicKey")).pem),
    signHash: async (hash) => {
      const body = JSON.stringify({ digest: { sha256: Buffer.from(hash).toString("base64") } });
      const { signature } = await ask(":asymmetricSign", { method: "POST", body });
      return Buffer.from(textOf(signature), "base64");
    },
  };
}

type Token = Awaited<ReturnType<typeof fetchToken>>;

/** Fetches an access token. `untilMs`: monotonic time at which the token expires. */
async function fetchToken(ports: ServicePorts) {
  const { http, clock, environment } = ports;
  const file = environment.GOOGLE_APPLICATION_CREDENTIALS;
  const askedAtMs = clock.monotonicMs();
  const { status, members } = await http.ask(file ? await accountRequest(ports, file) : metadataRequest(environment));
  const { access_token: value, expires_in: seconds } = members;
  if (status === 200 && typeof value === "string" && typeof seconds === "number") {
    return { value, untilMs: askedAtMs + seconds * 1_000 };
  }
  const from = file ? "the token endpoint" : "the metadata server";
  throw refusal(`no access token for Google Cloud: ${from}`, status, "");
}

function metadataRequest({ GCE_METADATA_HOST }: Environment): ServiceRequest {
  const path = "computeMetadata/v1/instance/service-accounts/default/token";
  const url = `http://${GCE_METADATA_HOST || METADATA_HOST}/${path}`;
  return { url, headers: { "metadata-flavor": "Google" }, timeoutMs: 2_000 };
}

/**
 * Builds the token request of a service account (RFC 7523): a JWT signed with the account's key, exchanged for a token
 * at the endpoint that the file names.
 */
async function accountRequest({ clock, warn }: ServicePorts, file: string): Promise<ServiceRequest> {
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
