/** Signs with keys of AWS KMS (ECC_SECG_P256K1), over its JSON interface. */
import { createHash, createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { SignerAway } from "../../../../ports/signer.ts";
import { BadKey } from "../private-keys.ts";
import {
  type Environment,
  type KeyService,
  openKeys,
  refusal,
  renewed,
  type ServicePorts,
  type ServiceRequest,
  type SignerPorts,
  textOf,
} from "./key-service.ts";

export function openAwsKms(keyIds: readonly string[], ports: SignerPorts) {
  return openKeys(ports, (service) => {
    const credentials = renewed(ports.clock, () => findCredentials(service));
    return keyIds.map((keyId) => keyOf(service, credentials, keyId));
  });
}

function keyOf(ports: ServicePorts, credentials: () => Promise<AwsCredentials>, keyId: string): KeyService {
  const { http, clock, environment } = ports;
  const name = `AWS KMS key ${keyId}`;
  const region = /^arn:[^:]+:kms:([^:]+):/.exec(keyId)?.[1] || regionOf(environment);
  if (!region) throw new BadKey(`${name}: give its ARN, or set AWS_REGION`);
  const domain = region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  const url = new URL(environment.AWS_ENDPOINT_URL_KMS || `https://kms.${region}.${domain}/`);
  const ask = async (action: string, member: string, asked: object = {}) => {
    const body = JSON.stringify({ KeyId: keyId, ...asked });
    const headers = { "content-type": "application/x-amz-json-1.1", "x-amz-target": `TrentService.${action}` };
    const signed = signedHeaders({ url, region, service: "kms", headers, body }, await credentials(), clock.now());
    const { status, members } = await http.ask({ method: "POST", url: url.href, headers: signed, body });
    if (status === 200) return Buffer.from(textOf(members[member]), "base64");
    // Remove the namespace that `__type`, the error's type, may have before a hash sign:
    // com.amazonaws.kms#NotFoundException.
    const kind = textOf(members.__type).replace(/^.*#/, "");
    throw refusal(name, status, [kind, textOf(members.message ?? members.Message)].filter(Boolean).join(": "));
  };
  return {
    name,
    publicKey: () => ask("GetPublicKey", "PublicKey"),
    signHash: (hash) => {
      const message = { Message: Buffer.from(hash).toString("base64"), MessageType: "DIGEST" };
      return ask("Sign", "Signature", { ...message, SigningAlgorithm: "ECDSA_SHA_256" });
    },
  };
}

function regionOf({ AWS_REGION, AWS_DEFAULT_REGION }: Environment) {
  return AWS_REGION || AWS_DEFAULT_REGION;
}

interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Session token of temporary credentials; null for permanent ones. */
  readonly sessionToken: string | null;
}

export interface AwsRequest {
  readonly url: URL;
  readonly region: string;
  readonly service: string;
  /** Headers to sign, besides `host` and the signature's own; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * All headers of a JSON POST to the root of an AWS service, including the signature (AWS Signature Version 4):
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
export function signedHeaders(
  { url, region, service, headers, body }: AwsRequest,
  { accessKeyId, secretAccessKey, sessionToken }: AwsCredentials,
  now: Date,
): Readonly<Record<string, string>> {
  const timestamp = now.toISOString().replace(/[:-]|\.\d{3}/g, "");
  const token = sessionToken === null ? {} : { "x-amz-security-token": sessionToken };
  const signed: Record<string, string> = { ...headers, host: url.host, "x-amz-date": timestamp, ...token };
  const names = Object.keys(signed).sort();
  const lines = names.map((name) => `${name}:${signed[name]?.trim()}\n`).join("");
  const canonical = ["POST", url.pathname, "", lines, names.join(";"), sha256(body)].join("\n");
  const scope = [timestamp.slice(0, 8), region, service, "aws4_request"];
  const text = ["AWS4-HMAC-SHA256", timestamp, scope.join("/"), sha256(canonical)].join("\n");
  const signature = hmac(scope.reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`), text).toString("hex");
  const credential = `Credential=${[accessKeyId, ...scope].join("/")}`;
  const authorization = `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return { ...signed, authorization };
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

type Dated = AwsCredentials & { readonly untilMs: number };

/**
 * Finds credentials in the sources that AWS's tools use on a server, in their order: environment, web identity (EKS),
 * container endpoint (ECS, EKS Pod Identity), instance metadata (EC2, version 2). Profiles and single sign-on are for
 * people at a terminal: export such credentials into the environment.
 */
async function findCredentials(ports: ServicePorts): Promise<Dated> {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, ...environment } = ports.environment;
  if (accessKeyId && secretAccessKey) {
    const sessionToken = environment.AWS_SESSION_TOKEN || null;
    return { accessKeyId, secretAccessKey, sessionToken, untilMs: Number.MAX_SAFE_INTEGER };
  }
  return (await fromWebIdentity(ports)) ?? (await fromContainer(ports)) ?? fromInstance(ports);
}

/** Exchanges the cluster's token for a role's credentials. STS answers in XML. */
async function fromWebIdentity(ports: ServicePorts): Promise<Dated | null> {
  const { http, environment } = ports;
  const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: role } = environment;
  if (!file || !role) return null;
  const region = regionOf(environment);
  const url = environment.AWS_ENDPOINT_URL_STS || `https://sts.${region ? `${region}.` : ""}amazonaws.com`;
  const body = new URLSearchParams({
    Action: "AssumeRoleWithWebIdentity",
    Version: "2011-06-15",
    RoleArn: role,
    RoleSessionName: environment.AWS_ROLE_SESSION_NAME || "fencepost",
    WebIdentityToken: await tokenIn(file),
  }).toString();
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const { status, text } = await http.ask({ method: "POST", url: `${url}/`, headers, body });
  const member = (name: string) => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1] ?? "";
  if (status !== 200) throw refusal("AWS STS", status, `${member("Code")} ${member("Message")}`.trim());
  const names = ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"];
  return dated(ports, Object.fromEntries(names.map((name) => [name, member(name)])), "AWS STS");
}

const CONTAINER_HOST = "http://169.254.170.2";

async function fromContainer(ports: ServicePorts): Promise<Dated | null> {
  const { http, environment } = ports;
  const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: relative, AWS_CONTAINER_CREDENTIALS_FULL_URI: full } = environment;
  const url = relative ? `${CONTAINER_HOST}${relative}` : full;
  if (!url) return null;
  const { AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file, AWS_CONTAINER_AUTHORIZATION_TOKEN: given } = environment;
  const token = file ? await tokenIn(file) : given;
  const { status, members } = await http.ask({ url, headers: token ? { authorization: token } : {} });
  const name = "the container's credentials endpoint";
  if (status !== 200) throw refusal(name, status, "");
  return dated(ports, members, name);
}

const INSTANCE_HOST = "http://169.254.169.254";
/** Timeout of the EC2 metadata server. Short, because outside EC2 no server answers at that address. */
const METADATA_TIMEOUT_MS = 1_000;

/**
 * Reads credentials from the EC2 metadata server, version 2 only: it requires a token first, which a server-side
 * request forgery cannot fetch.
 */
async function fromInstance(ports: ServicePorts): Promise<Dated> {
  const { http, environment } = ports;
  const none = "no AWS credentials: none in the environment, of a web identity, of a container, or of an instance";
  if (environment.AWS_EC2_METADATA_DISABLED === "true") throw new SignerAway(none);
  const host = environment.AWS_EC2_METADATA_SERVICE_ENDPOINT || INSTANCE_HOST;
  const ask = async (path: string, request: Pick<ServiceRequest, "method" | "headers">) => {
    const answer = await http
      .ask({ ...request, url: `${host}/latest/${path}`, timeoutMs: METADATA_TIMEOUT_MS })
      .catch((cause: unknown) => Promise.reject(new SignerAway(none, { cause })));
    if (answer.status === 200) return answer;
    throw new SignerAway(`${none} (the EC2 metadata server answered ${answer.status})`);
  };
  const lifetime = { "x-aws-ec2-metadata-token-ttl-seconds": "21600" };
  const { text: token } = await ask("api/token", { method: "PUT", headers: lifetime });
  const headers = { "x-aws-ec2-metadata-token": token.trim() };
  const { text: roles } = await ask("meta-data/iam/security-credentials/", { headers });
  const [role] = roles.trim().split("\n");
  const { members } = await ask(`meta-data/iam/security-credentials/${role}`, { headers });
  return dated(ports, members, "the instance's metadata");
}

/**
 * Reads credentials and their expiry from a response. Field names differ between endpoints; only STS has
 * `SessionToken`.
 */
function dated({ clock }: ServicePorts, members: Readonly<Record<string, unknown>>, from: string): Dated {
  const [accessKeyId, secretAccessKey] = [textOf(members.AccessKeyId), textOf(members.SecretAccessKey)];
  const leftMs = Date.parse(textOf(members.Expiration)) - clock.now().getTime();
  if (!accessKeyId || !secretAccessKey || Number.isNaN(leftMs))
    throw new SignerAway(`${from} returned no valid credentials`);
  const sessionToken = textOf(members.Token) || textOf(members.SessionToken) || null;
  return { accessKeyId, secretAccessKey, sessionToken, untilMs: clock.monotonicMs() + leftMs };
}

async function tokenIn(file: string) {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (cause) {
    throw new SignerAway(`the token file ${file} cannot be read`, { cause });
  }
}
