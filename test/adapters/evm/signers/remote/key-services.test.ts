import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseTransaction } from "viem";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openSigner, type SignerSources } from "../../../../../src/adapters/evm/signers/open-signer.ts";
import { signedHeaders } from "../../../../../src/adapters/evm/signers/remote/aws-kms.ts";
import { systemClock } from "../../../../../src/adapters/system/clock.ts";
import type { Hex } from "../../../../../src/domain/lane.ts";
import type { MessageToSign } from "../../../../../src/domain/messages/message.ts";
import type { UnsignedTransaction } from "../../../../../src/domain/transaction/transaction.ts";
import { addressOf, CONTRACT_KEYS, describeSignerContract } from "../../../../contracts/signer.contract.ts";
import { AWS_KEY, derSignature, startAwsKms, startGcpKms } from "../../../../support/key-services.ts";
import { MESSAGES, signersBy } from "../../../../support/messages.ts";
import { type ServiceServer, startServiceServer } from "../../../../support/service-server.ts";
import { failure } from "../../../../support/signer-away.ts";

const KEY: Hex = `0x${"11".repeat(32)}`;
const ADDRESS = addressOf(KEY);
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
const TRANSFER: UnsignedTransaction = {
  chainId: 1,
  nonce: 7,
  to: `0x${"22".repeat(20)}`,
  data: "0x",
  value: 5n,
  gas: 21_000n,
  fees: { type: "eip1559", maxFeePerGas: 20n, maxPriorityFeePerGas: 1n },
  accessList: [],
};

type Environment = Readonly<Record<string, string | undefined>>;

async function open(sources: SignerSources, environment: Environment) {
  const signer = await openSigner({ sources, clock: systemClock, environment });
  onTestFinished(() => signer.close());
  return signer;
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "fencepost-services-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

const ids = CONTRACT_KEYS.map((_, index) => `alias/key-${index}`);
const versions = CONTRACT_KEYS.map(
  (_, index) => `projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/${index + 1}`,
);
const keyed = (names: readonly string[]) =>
  Object.fromEntries(names.map((name, index) => [name, CONTRACT_KEYS[index] as Hex]));
const awsEnvironment = ({ url }: ServiceServer): Environment => ({
  AWS_ENDPOINT_URL_KMS: url,
  AWS_REGION: "eu-west-1",
  AWS_ACCESS_KEY_ID: AWS_KEY.id,
  AWS_SECRET_ACCESS_KEY: AWS_KEY.secret,
});
const account = generateKeyPairSync("rsa", { modulusLength: 2_048 });

describeSignerContract(
  "AWS KMS",
  async () => {
    const service = await startAwsKms(keyed(ids));
    const environment = awsEnvironment(service);
    const signer = await openSigner({ sources: { awsKmsKeyIds: ids }, clock: systemClock, environment });
    return { ...signer, close: () => Promise.all([signer.close(), service.close()]).then(() => undefined) };
  },
  { runs: 30, repeats: false },
);

describeSignerContract(
  "Google Cloud KMS",
  async () => {
    const service = await startGcpKms({ keys: keyed(versions), account: account.publicKey });
    const environment = {
      CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS: `${service.url}/`,
      GCE_METADATA_HOST: new URL(service.url).host,
    };
    const signer = await openSigner({ sources: { gcpKmsKeyVersions: versions }, clock: systemClock, environment });
    return { ...signer, close: () => Promise.all([signer.close(), service.close()]).then(() => undefined) };
  },
  { runs: 30, repeats: false },
);

describe("signing with AWS KMS", () => {
  let service: ServiceServer;
  beforeAll(async () => {
    service = await startAwsKms({ "alias/hot": KEY, "arn:aws:kms:us-east-1:111122223333:key/mrk-1": KEY });
  });
  afterAll(() => service.close());

  it("signs HTTP requests as in AWS's published example", () => {
    const request = {
      url: new URL("https://example.amazonaws.com/"),
      region: "us-east-1",
      service: "service",
      headers: {},
      body: "",
    };
    const credentials = { accessKeyId: AWS_KEY.id, secretAccessKey: AWS_KEY.secret, sessionToken: null };
    expect(signedHeaders(request, credentials, new Date("2015-08-30T12:36:00Z")).authorization).toBe(
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    );
  });

  // protects [Signers] src/adapters/evm/signers/remote/key-service.ts
  it("accepts signatures that differ each time, with high or low s", async () => {
    const signer = await open({ awsKmsKeyIds: ["alias/hot"] }, awsEnvironment(service));
    const signed = await signer.sign(
      ADDRESS,
      Array.from({ length: 24 }, () => TRANSFER),
    );
    expect(new Set(signed.map(({ txHash }) => txHash)).size).toBe(24);
    const tooHigh = signed.filter(
      ({ rawTransaction }) => BigInt(parseTransaction(rawTransaction).s ?? "0x") > HALF_ORDER,
    );
    expect(tooHigh).toEqual([]);
  });

  it("calls the region that the key's ARN names", async () => {
    const arn = "arn:aws:kms:us-east-1:111122223333:key/mrk-1";
    const { AWS_REGION: _, ...environment } = awsEnvironment(service);
    await open({ awsKmsKeyIds: [arn] }, environment);
    expect(service.requests.at(-1)?.headers.authorization).toContain("/us-east-1/kms/aws4_request");
    await expect(open({ awsKmsKeyIds: ["alias/hot"] }, environment)).rejects.toThrow(/give its ARN, or set AWS_REGION/);
  });

  it.each<[string, number, object, RegExp]>([
    [
      "limits the rate",
      400,
      { __type: "ThrottlingException", message: "Rate exceeded" },
      /answered 400: ThrottlingException: Rate exceeded/,
    ],
    [
      "has disabled the key",
      400,
      { __type: "com.amazonaws.kms#DisabledException", message: "is disabled." },
      /DisabledException: is disabled/,
    ],
    [
      "denies access",
      400,
      { __type: "AccessDeniedException", Message: "no identity-based policy" },
      /AccessDeniedException: no identity/,
    ],
    ["fails", 500, {}, /answered 500$/],
  ])("is temporarily unavailable if the service %s", async (_, status, body, words) => {
    const signer = await open({ awsKmsKeyIds: ["alias/hot"] }, awsEnvironment(service));
    service.answer = () => ({ status, body });
    const away = await failure(signer.sign(ADDRESS, [TRANSFER]));
    service.answer = null;
    expect(away.lies).toBe(false);
    expect(away.message).toMatch(words);
    expect(await signer.sign(ADDRESS, [TRANSFER])).toHaveLength(1);
  });

  it.each<[string, () => Buffer]>([
    ["of another key", () => derSignature(`0x${"44".repeat(32)}`, `0x${"01".repeat(32)}`)],
    ["of another hash", () => derSignature(KEY, `0x${"01".repeat(32)}`)],
    ["that is no DER", () => Buffer.from("signature")],
    ["with bytes behind it", () => Buffer.concat([derSignature(KEY, `0x${"01".repeat(32)}`), Buffer.of(0)])],
    ["of zero", () => Buffer.from("3006020100020100", "hex")],
    ["that is empty", () => Buffer.alloc(0)],
    // protects [Signers] src/adapters/evm/signers/remote/key-service.ts
  ])("refuses a signature %s", async (_, forge) => {
    const signer = await open({ awsKmsKeyIds: ["alias/hot"] }, awsEnvironment(service));
    const forged = forge().toString("base64");
    service.answer = () => ({ body: { Signature: forged } });
    const refused = [
      await failure(signer.sign(ADDRESS, [TRANSFER])),
      await failure(signer.signMessages(ADDRESS, MESSAGES)),
    ];
    service.answer = null;
    expect(refused).toMatchObject([
      { lies: true, signed: [] },
      { lies: true, signed: [] },
    ]);
  });

  // protects [Signers] src/adapters/evm/signers/remote/key-service.ts
  it("signs messages with low s and v 27 or 28, whatever s the service chose", async () => {
    const signer = await open({ awsKmsKeyIds: ["alias/hot"] }, awsEnvironment(service));
    const many = Array.from({ length: 24 }, (_, at) => MESSAGES[at % MESSAGES.length] as MessageToSign);
    const made = await signer.signMessages(ADDRESS, many);
    expect(new Set(made).size).toBe(24);
    for (const [at, signature] of made.entries()) {
      expect(BigInt(`0x${signature.slice(66, 130)}`)).toBeLessThanOrEqual(HALF_ORDER);
      expect(await signersBy(many[at] as MessageToSign, signature)).toEqual([ADDRESS, ADDRESS]);
    }
  });

  it("is unavailable for messages if the service denies access", async () => {
    const signer = await open({ awsKmsKeyIds: ["alias/hot"] }, awsEnvironment(service));
    service.answer = () => ({ status: 400, body: { __type: "AccessDeniedException", Message: "no kms:Sign" } });
    const away = await failure(signer.signMessages(ADDRESS, MESSAGES));
    service.answer = null;
    expect(away).toMatchObject({ lies: false, message: expect.stringMatching(/AccessDeniedException: no kms:Sign/) });
  });

  it("refuses a key of another curve at start", async () => {
    const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "der", type: "spki" });
    service.answer = () => ({ body: { PublicKey: other.toString("base64") } });
    const opening = open({ awsKmsKeyIds: ["alias/hot"] }, awsEnvironment(service));
    await expect(opening).rejects.toThrow(
      /AWS KMS key alias\/hot has no public key of secp256k1 \(the key's curve is P-256\)/,
    );
    service.answer = null;
  });
});

describe("AWS credentials for KMS", () => {
  const expiring = {
    AccessKeyId: AWS_KEY.id,
    SecretAccessKey: AWS_KEY.secret,
    Token: "session",
    Expiration: "2126-01-01T00:00:00Z",
  };

  async function kms() {
    const service = await startAwsKms({ "alias/hot": KEY });
    onTestFinished(() => service.close());
    const { AWS_ACCESS_KEY_ID: _, AWS_SECRET_ACCESS_KEY: __, ...environment } = awsEnvironment(service);
    return { service, environment };
  }

  /** A fake source of credentials that records its requests. */
  async function provider(body: unknown, status = 200) {
    const service = await startServiceServer(() => ({ status, body }));
    onTestFinished(() => service.close());
    return service;
  }

  it("are fetched with the container's token if the node runs in a container", async () => {
    const { service, environment } = await kms();
    const source = await provider(expiring);
    const file = join(await folder(), "token");
    await writeFile(file, "of-the-pod\n");
    const where = {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${source.url}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file,
    };
    const signer = await open({ awsKmsKeyIds: ["alias/hot"] }, { ...environment, ...where });
    await signer.sign(ADDRESS, [TRANSFER, { ...TRANSFER, nonce: 8 }]);
    expect(source.requests).toMatchObject([{ method: "GET", headers: { authorization: "of-the-pod" } }]);
    expect(service.requests.at(-1)?.headers["x-amz-security-token"]).toBe("session");
  });

  it("are fetched again if they expire soon", async () => {
    const { environment } = await kms();
    const source = await provider({ ...expiring, Expiration: new Date(Date.now() + 60_000).toISOString() });
    const where = { AWS_CONTAINER_CREDENTIALS_FULL_URI: source.url };
    const signer = await open({ awsKmsKeyIds: ["alias/hot"] }, { ...environment, ...where });
    await signer.sign(ADDRESS, [TRANSFER]);
    expect(source.requests).toHaveLength(2);
  });

  it("are fetched for the role of a web identity with the cluster's token", async () => {
    const { environment } = await kms();
    const xml = `<AssumeRoleWithWebIdentityResponse><Credentials><AccessKeyId>${AWS_KEY.id}</AccessKeyId><SecretAccessKey>${AWS_KEY.secret}</SecretAccessKey><SessionToken>s</SessionToken><Expiration>2126-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResponse>`;
    const source = await provider(xml);
    const file = join(await folder(), "token");
    await writeFile(file, "jwt-of-the-pod\n");
    const where = {
      AWS_WEB_IDENTITY_TOKEN_FILE: file,
      AWS_ROLE_ARN: "arn:aws:iam::1:role/relay",
      AWS_ENDPOINT_URL_STS: source.url,
    };
    const signer = await open({ awsKmsKeyIds: ["alias/hot"] }, { ...environment, ...where });
    expect(await signer.sign(ADDRESS, [TRANSFER])).toHaveLength(1);
    const asked = new URLSearchParams(source.requests[0]?.body);
    expect(Object.fromEntries(asked)).toMatchObject({
      Action: "AssumeRoleWithWebIdentity",
      WebIdentityToken: "jwt-of-the-pod",
    });
    source.answer = () => ({ status: 403, body: "<Error><Code>AccessDenied</Code><Message>no</Message></Error>" });
    await expect(open({ awsKmsKeyIds: ["alias/hot"] }, { ...environment, ...where })).rejects.toThrow(
      "AWS STS answered 403: AccessDenied no",
    );
  });

  it("are fetched with an IMDSv2 token on an EC2 instance", async () => {
    const { environment } = await kms();
    const source = await startServiceServer(({ method, path, headers }) => {
      if (method === "PUT" && path === "/latest/api/token") return { body: "imds-token" };
      if (headers["x-aws-ec2-metadata-token"] !== "imds-token") return { status: 401, body: "" };
      return path.endsWith("/security-credentials/") ? { body: "relay-role" } : { body: expiring };
    });
    onTestFinished(() => source.close());
    const where = { AWS_EC2_METADATA_SERVICE_ENDPOINT: source.url };
    expect((await open({ awsKmsKeyIds: ["alias/hot"] }, { ...environment, ...where })).addresses()).toEqual([ADDRESS]);
    expect(source.requests.at(-1)?.path).toBe("/latest/meta-data/iam/security-credentials/relay-role");
  });

  it("are reported in one line if they are missing", async () => {
    const { environment } = await kms();
    const nowhere = { ...environment, AWS_EC2_METADATA_DISABLED: "true" };
    await expect(open({ awsKmsKeyIds: ["alias/hot"] }, nowhere)).rejects.toThrow(
      /^AWS KMS key alias\/hot: no AWS credentials: none in the environment/,
    );
    const empty = await provider({});
    const where = { AWS_CONTAINER_CREDENTIALS_FULL_URI: empty.url };
    await expect(open({ awsKmsKeyIds: ["alias/hot"] }, { ...environment, ...where })).rejects.toThrow(
      /returned no valid credentials/,
    );
  });

  it("name the key, not only the host, if nothing listens there", async () => {
    const { environment } = await kms();
    const closed = await startServiceServer(() => ({ body: "" }));
    await closed.close();
    const nowhere = {
      ...environment,
      AWS_ENDPOINT_URL_KMS: closed.url,
      AWS_ACCESS_KEY_ID: "a",
      AWS_SECRET_ACCESS_KEY: "b",
    };
    await expect(open({ awsKmsKeyIds: ["alias/hot"] }, nowhere)).rejects.toThrow(
      `AWS KMS key alias/hot: ${closed.url} is not reachable (ECONNREFUSED)`,
    );
  });
});

describe("signing with Google Cloud KMS", () => {
  const [version = ""] = versions;

  async function gcp() {
    const service = await startGcpKms({ keys: { [version]: KEY }, account: account.publicKey });
    onTestFinished(() => service.close());
    return { service, environment: { CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS: `${service.url}/` } };
  }

  it("uses the service account, with one access token for many signatures", async () => {
    const { service, environment } = await gcp();
    const file = join(await folder(), "account.json");
    const content = {
      type: "service_account",
      client_email: "relay@project.iam.gserviceaccount.com",
      private_key: account.privateKey.export({ format: "pem", type: "pkcs8" }),
      token_uri: `${service.url}/token`,
    };
    await writeFile(file, JSON.stringify(content), { mode: 0o600 });
    const signer = await open(
      { gcpKmsKeyVersions: [version] },
      { ...environment, GOOGLE_APPLICATION_CREDENTIALS: file },
    );
    expect(await signer.sign(ADDRESS, [TRANSFER, { ...TRANSFER, nonce: 8 }])).toHaveLength(2);
    expect(service.requests.filter(({ path }) => path === "/token")).toHaveLength(1);
    await writeFile(file, JSON.stringify({ type: "authorized_user" }));
    const opening = open({ gcpKmsKeyVersions: [version] }, { ...environment, GOOGLE_APPLICATION_CREDENTIALS: file });
    await expect(opening).rejects.toThrow(/is not the key of a service account/);
  });

  it("is unavailable if the service refuses", async () => {
    const { service, environment } = await gcp();
    const signer = await open(
      { gcpKmsKeyVersions: [version] },
      { ...environment, GCE_METADATA_HOST: new URL(service.url).host },
    );
    service.answer = () => ({ status: 403, body: { error: { code: 403, message: "Permission denied\non key" } } });
    const away = await failure(signer.sign(ADDRESS, [TRANSFER]));
    expect(away.message).toBe(`Google Cloud KMS key ${version} answered 403: Permission denied on key`);
    const forged = derSignature(KEY, `0x${"01".repeat(32)}`).toString("base64");
    service.answer = () => ({ body: { signature: forged } });
    expect(await failure(signer.sign(ADDRESS, [TRANSFER]))).toMatchObject({ lies: true });
  });

  it("fails at start if there is no access token", async () => {
    const { service, environment } = await gcp();
    service.answer = () => ({ status: 404, body: "" });
    const opening = open(
      { gcpKmsKeyVersions: [version] },
      { ...environment, GCE_METADATA_HOST: new URL(service.url).host },
    );
    await expect(opening).rejects.toThrow("no access token for Google Cloud: the metadata server answered 404");
  });
});

describe("keys stored in Vault", () => {
  const environment = (url: string): Environment => ({
    VAULT_ADDR: url,
    VAULT_TOKEN: "hvs.token",
    VAULT_NAMESPACE: "team",
  });

  it.each([
    ["2", { data: { data: { privateKey: KEY }, metadata: { version: 3 } } }],
    ["1", { data: { privateKey: KEY.slice(2) } }],
  ])("are read once from version %s of the KV engine", async (_, body) => {
    const service = await startServiceServer(() => ({ body }));
    onTestFinished(() => service.close());
    const signer = await open({ vaultKeyPaths: ["secret/data/hot"] }, environment(service.url));
    expect(signer.addresses()).toEqual([ADDRESS]);
    await signer.sign(ADDRESS, [TRANSFER]);
    expect(service.requests).toMatchObject([
      {
        method: "GET",
        path: "/v1/secret/data/hot",
        headers: { "x-vault-token": "hvs.token", "x-vault-namespace": "team" },
      },
    ]);
  });

  it("are reported as missing if Vault refuses the request", async () => {
    const service = await startServiceServer(() => ({ status: 403, body: { errors: ["permission denied"] } }));
    onTestFinished(() => service.close());
    const opening = () => open({ vaultKeyPaths: ["secret/data/hot"] }, environment(service.url));
    await expect(opening()).rejects.toThrow(
      "Vault, asked for the secret secret/data/hot, answered 403: permission denied",
    );
    service.answer = () => ({ body: { data: { data: { key: KEY } } } });
    await expect(opening()).rejects.toThrow("Vault's secret/data/hot has no field privateKey");
    service.answer = () => ({ body: { data: { data: { privateKey: "hunter2" } } } });
    await expect(opening()).rejects.toThrow(/^private key 1 is not 32 bytes of hex$/);
    await expect(open({ vaultKeyPaths: ["secret/data/hot"] }, {})).rejects.toThrow(/VAULT_ADDR and VAULT_TOKEN/);
  });
});
