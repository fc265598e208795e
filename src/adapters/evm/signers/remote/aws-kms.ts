/** Keys of AWS KMS (ECC_SECG_P256K1), over its JSON interface. */
import type { Clock } from "../../../../ports/clock.ts";
import { BadKey } from "../private-keys.ts";
import { awsCredentials, type Environment } from "./aws-credentials.ts";
import { type AwsCredentials, signedHeaders } from "./aws-sigv4.ts";
import { type KeyService, openKey, refusal } from "./key-service.ts";
import { membersOf, openServiceHttp, type ServiceHttp, textOf } from "./service-http.ts";

interface Kms {
  readonly http: ServiceHttp;
  readonly clock: Clock;
  readonly credentials: () => Promise<AwsCredentials>;
  readonly environment: Environment;
}

export async function openAwsKms(keyIds: readonly string[], clock: Clock, environment: Environment) {
  const http = openServiceHttp(clock);
  const kms = { http, clock, environment, credentials: awsCredentials({ http, clock, environment }) };
  try {
    return { keys: await Promise.all(keyIds.map((keyId) => openKey(keyOf(kms, keyId)))), close: () => http.close() };
  } catch (error) {
    await http.close();
    throw error;
  }
}

function keyOf(kms: Kms, keyId: string): KeyService {
  const name = `AWS KMS key ${keyId}`;
  const region = regionOf(kms.environment, keyId);
  const ask = (action: string, members: object) =>
    call(kms, { name, region, action, members: { KeyId: keyId, ...members } });
  return {
    name,
    publicKey: async () => Buffer.from(textOf((await ask("GetPublicKey", {})).PublicKey), "base64"),
    signHash: async (hash) => {
      const message = { Message: Buffer.from(hash).toString("base64"), MessageType: "DIGEST" };
      const { Signature } = await ask("Sign", { ...message, SigningAlgorithm: "ECDSA_SHA_256" });
      return Buffer.from(textOf(Signature), "base64");
    },
  };
}

/** Of the key's own name, where that says it. */
function regionOf({ AWS_REGION, AWS_DEFAULT_REGION }: Environment, keyId: string): string {
  const region = /^arn:[^:]+:kms:([^:]+):/.exec(keyId)?.[1] || AWS_REGION || AWS_DEFAULT_REGION;
  if (!region) throw new BadKey(`AWS KMS key ${keyId}: give its ARN, or set AWS_REGION`);
  return region;
}

interface Call {
  readonly name: string;
  readonly region: string;
  readonly action: string;
  readonly members: object;
}

async function call({ http, clock, credentials, environment }: Kms, { name, region, action, members }: Call) {
  const url = new URL(environment.AWS_ENDPOINT_URL_KMS || `https://kms.${region}.${domainOf(region)}/`);
  const body = JSON.stringify(members);
  const headers = { "content-type": "application/x-amz-json-1.1", "x-amz-target": `TrentService.${action}` };
  const signed = signedHeaders({ url, region, service: "kms", headers, body }, await credentials(), clock.now());
  const { status, text } = await http.ask({ method: "POST", url: url.href, headers: signed, body });
  const answer = membersOf(text);
  if (status === 200) return answer;
  // The type may come with the name of its shape in front of it.
  const kind = textOf(answer.__type).replace(/^.*#/, "");
  throw refusal(name, status, [kind, textOf(answer.message) || textOf(answer.Message)].filter(Boolean).join(": "));
}

function domainOf(region: string): string {
  return region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}
