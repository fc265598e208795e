/**
 * Signature Version 4 of AWS, for a POST of JSON to the root of a service:
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
import { createHash, createHmac } from "node:crypto";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Set for temporary credentials. */
  readonly sessionToken: string | null;
}

export interface AwsRequest {
  readonly url: URL;
  readonly region: string;
  readonly service: string;
  /** Headers besides `host` and the signature's own; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** All headers of the request, including the signature. */
export function signedHeaders(
  { url, region, service, headers, body }: AwsRequest,
  { accessKeyId, secretAccessKey, sessionToken }: AwsCredentials,
  now: Date,
): Readonly<Record<string, string>> {
  const timestamp = now.toISOString().replace(/[:-]|\.\d{3}/g, "");
  const date = timestamp.slice(0, 8);
  const token = sessionToken === null ? {} : { "x-amz-security-token": sessionToken };
  const signed: Record<string, string> = { ...headers, host: url.host, "x-amz-date": timestamp, ...token };
  const names = Object.keys(signed).sort();
  const lines = names.map((name) => `${name}:${signed[name]?.trim()}\n`).join("");
  const canonical = ["POST", url.pathname, "", lines, names.join(";"), sha256(body)].join("\n");
  const scope = `${date}/${region}/${service}/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", timestamp, scope, sha256(canonical)].join("\n");
  const key = [date, region, service, "aws4_request"].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const signature = hmac(key, text).toString("hex");
  const credential = `Credential=${accessKeyId}/${scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return { ...signed, authorization: `AWS4-HMAC-SHA256 ${credential}` };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
