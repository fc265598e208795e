/** Keys of AWS KMS (ECC_SECG_P256K1), over its JSON interface. */
import { BadKey } from "../private-keys.ts";
import { awsCredentials } from "./aws-credentials.ts";
import { type AwsCredentials, signedHeaders } from "./aws-sigv4.ts";
import { type KeyService, openKeys, refusal } from "./key-service.ts";
import { type Environment, membersOf, type ServicePorts, type SignerPorts, textOf } from "./service-http.ts";

export function openAwsKms(keyIds: readonly string[], ports: SignerPorts) {
  return openKeys(ports, (service) => {
    const credentials = awsCredentials(service);
    return keyIds.map((keyId) => keyOf(service, credentials, keyId));
  });
}

function keyOf(ports: ServicePorts, credentials: () => Promise<AwsCredentials>, keyId: string): KeyService {
  const { http, clock, environment } = ports;
  const name = `AWS KMS key ${keyId}`;
  const region = regionOf(environment, keyId);
  const url = new URL(environment.AWS_ENDPOINT_URL_KMS || `https://kms.${region}.${domainOf(region)}/`);
  const ask = async (action: string, members: object) => {
    const body = JSON.stringify({ KeyId: keyId, ...members });
    const headers = { "content-type": "application/x-amz-json-1.1", "x-amz-target": `TrentService.${action}` };
    const signed = signedHeaders({ url, region, service: "kms", headers, body }, await credentials(), clock.now());
    const { status, text } = await http.ask({ method: "POST", url: url.href, headers: signed, body });
    const answer = membersOf(text);
    if (status === 200) return answer;
    // `__type` may have the shape's namespace before a hash sign: com.amazonaws.kms#NotFoundException.
    const kind = textOf(answer.__type).replace(/^.*#/, "");
    throw refusal(name, status, [kind, textOf(answer.message) || textOf(answer.Message)].filter(Boolean).join(": "));
  };
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

/** The region in the key's ARN, else the one of the environment. */
function regionOf({ AWS_REGION, AWS_DEFAULT_REGION }: Environment, keyId: string): string {
  const region = /^arn:[^:]+:kms:([^:]+):/.exec(keyId)?.[1] || AWS_REGION || AWS_DEFAULT_REGION;
  if (!region) throw new BadKey(`AWS KMS key ${keyId}: give its ARN, or set AWS_REGION`);
  return region;
}

function domainOf(region: string): string {
  return region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}
