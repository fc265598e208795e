/**
 * AWS credentials, from the sources that AWS's tools use on a server, in their order: environment, web identity (EKS),
 * container endpoint (ECS, EKS Pod Identity), instance metadata (EC2, version 2). Profiles and single sign-on are for
 * people at a terminal: export such credentials into the environment.
 */
import { readFile } from "node:fs/promises";
import { SignerAway } from "../../../../ports/signer.ts";
import type { AwsCredentials } from "./aws-sigv4.ts";
import { renewed } from "./key-service.ts";
import { membersOf, type ServicePorts, textOf } from "./service-http.ts";

interface Dated extends AwsCredentials {
  /** Null if they do not expire. */
  readonly expiresAt: Date | null;
}

type Source = (ports: ServicePorts) => Promise<Dated> | null;

/** Short: outside EC2 no server answers there. */
const METADATA_TIMEOUT_MS = 1_000;

/** Credentials of the first source that has some, renewed before they expire. */
export function awsCredentials(ports: ServicePorts): () => Promise<AwsCredentials> {
  return renewed(
    () => find(ports),
    ({ expiresAt }) => expiresAt && expiresAt.getTime() - ports.clock.now().getTime(),
  );
}

function find(ports: ServicePorts): Promise<Dated> {
  for (const source of [fromEnvironment, fromWebIdentity, fromContainer]) {
    const found = source(ports);
    if (found !== null) return found;
  }
  return fromInstance(ports);
}

const fromEnvironment: Source = ({ environment }) => {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = environment;
  if (!accessKeyId || !secretAccessKey) return null;
  return Promise.resolve({
    accessKeyId,
    secretAccessKey,
    sessionToken: environment.AWS_SESSION_TOKEN || null,
    expiresAt: null,
  });
};

/** Exchanges the cluster's token for a role's credentials. STS answers in XML. */
const fromWebIdentity: Source = ({ http, environment }) => {
  const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: role } = environment;
  if (!file || !role) return null;
  const region = environment.AWS_REGION || environment.AWS_DEFAULT_REGION;
  const url = environment.AWS_ENDPOINT_URL_STS || `https://sts.${region ? `${region}.` : ""}amazonaws.com`;
  return (async () => {
    const body = new URLSearchParams({
      Action: "AssumeRoleWithWebIdentity",
      Version: "2011-06-15",
      RoleArn: role,
      RoleSessionName: environment.AWS_ROLE_SESSION_NAME || "fencepost",
      WebIdentityToken: (await readFile(file, "utf8").catch(unreadable(file))).trim(),
    }).toString();
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const { status, text } = await http.ask({ method: "POST", url: `${url}/`, headers, body });
    const member = (name: string): string => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1] ?? "";
    if (status !== 200)
      throw new SignerAway(`AWS STS answered ${status}: ${member("Code")} ${member("Message")}`.trim());
    const names = ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"];
    return dated(Object.fromEntries(names.map((name) => [name, member(name)])), "AWS STS");
  })();
};

const CONTAINER_HOST = "http://169.254.170.2";

const fromContainer: Source = ({ http, environment }) => {
  const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: relative, AWS_CONTAINER_CREDENTIALS_FULL_URI: full } = environment;
  const url = relative ? `${CONTAINER_HOST}${relative}` : full;
  if (!url) return null;
  return (async () => {
    const { AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file, AWS_CONTAINER_AUTHORIZATION_TOKEN: given } = environment;
    const token = file ? (await readFile(file, "utf8").catch(unreadable(file))).trim() : given;
    const { status, text } = await http.ask({ method: "GET", url, headers: token ? { authorization: token } : {} });
    if (status !== 200) throw new SignerAway(`the container's credentials endpoint answered ${status}`);
    return dated(membersOf(text), "the container's credentials endpoint");
  })();
};

const INSTANCE_HOST = "http://169.254.169.254";

/** Version 2 only: it needs a token first, which a server-side request forgery cannot fetch. */
async function fromInstance({ http, environment }: ServicePorts): Promise<Dated> {
  const none = "no AWS credentials: none in the environment, of a web identity, of a container, or of an instance";
  if (environment.AWS_EC2_METADATA_DISABLED === "true") throw new SignerAway(none);
  const host = environment.AWS_EC2_METADATA_SERVICE_ENDPOINT || INSTANCE_HOST;
  const ask = async (method: "GET" | "PUT", path: string, headers: Readonly<Record<string, string>>) => {
    const answer = await http
      .ask({ method, url: `${host}/latest/${path}`, headers, timeoutMs: METADATA_TIMEOUT_MS })
      .catch((cause: unknown) => Promise.reject(new SignerAway(none, { cause })));
    if (answer.status !== 200) throw new SignerAway(`${none} (the instance's metadata answered ${answer.status})`);
    return answer.text.trim();
  };
  const token = await ask("PUT", "api/token", { "x-aws-ec2-metadata-token-ttl-seconds": "21600" });
  const headers = { "x-aws-ec2-metadata-token": token };
  const role = await ask("GET", "meta-data/iam/security-credentials/", headers);
  const text = await ask("GET", `meta-data/iam/security-credentials/${role.split("\n")[0]}`, headers);
  return dated(membersOf(text), "the instance's metadata");
}

/** Field names of the endpoints; only STS has `SessionToken`. */
function dated(members: Readonly<Record<string, unknown>>, from: string): Dated {
  const [accessKeyId, secretAccessKey] = [textOf(members.AccessKeyId), textOf(members.SecretAccessKey)];
  const expiresAt = new Date(textOf(members.Expiration));
  const isWhole = accessKeyId !== "" && secretAccessKey !== "" && !Number.isNaN(expiresAt.getTime());
  if (!isWhole) throw new SignerAway(`${from} gave no credentials`);
  const sessionToken = textOf(members.Token) || textOf(members.SessionToken) || null;
  return { accessKeyId, secretAccessKey, sessionToken, expiresAt };
}

function unreadable(file: string): (cause: unknown) => never {
  return (cause) => {
    throw new SignerAway(`${file} cannot be read`, { cause });
  };
}
