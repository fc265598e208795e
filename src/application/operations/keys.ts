/**
 * API keys that are managed while the nodes run. A secret is shown once, when it is made; the database stores its
 * digest. A key may have two secrets, so that callers can move from one to the other without interruption.
 */
import { FencepostError, invalid, orDatabaseSilent } from "../../domain/errors.ts";
import { isQueueShare, KEY_NAME, MOST_PER_SECOND, SCOPES, USUAL_SCOPES } from "../../domain/keys/principal.ts";
import type { KeySecret, KeyTerms } from "../../ports/key-store.ts";
import type { Ports } from "../../ports/ports.ts";
import { asObject, parseAddress, refuseUnknownKeys } from "../requests/fields.ts";

type KeyPorts = Pick<Ports, "store" | "codec" | "secrets">;

/**
 * Number of characters of a secret's digest that serve as its id: enough to distinguish two secrets, and useless to an
 * attacker.
 */
const ID_CHARACTERS = 8;
const MOST_LIMITS = 1_000;

const ADDED_OR_NOT = "it may have been added: list the keys, and revoke a secret that nobody has";
const REVOKED_OR_NOT = "it may have been revoked: list the keys before you repeat it";

export function createKeyOperations({ store, codec, secrets }: KeyPorts) {
  return {
    /** Lists the API keys of the database; keys of the configuration are not included. */
    async keys() {
      return (await orDatabaseSilent(store.apiKeys(), null)).map(({ secrets, ...key }) => ({
        ...key,
        secrets: secrets.map(shown),
      }));
    },
    /**
     * `name`, `scopes`, `signers`, `chains`: adds a key, or one more secret to an existing key with the same terms.
     * CONFLICT if the key has two secrets, or exists with other terms.
     */
    async addKey(request: unknown, actor: string) {
      const terms = parseTerms(codec, request);
      const { secret, digest } = secrets.make();
      const result = await orDatabaseSilent(store.addApiSecret(terms, digest, actor), ADDED_OR_NOT);
      // The secret is returned only here, once.
      if (result === "added") return { ...terms, secret, secretId: digest.slice(0, ID_CHARACTERS) };
      const why =
        result === "full"
          ? "has two secrets already: revoke one of them first"
          : "exists with other scopes, limits or quotas: revoke it first";
      throw new FencepostError("CONFLICT", `the API key ${terms.name} ${why}`);
    },
    /** Revokes one secret of a key, or the whole key. */
    async revokeKey(name: string, secretId: string | undefined, actor: string): Promise<void> {
      refuseNoName(name);
      if (secretId !== undefined && !/^[0-9a-f]{8,64}$/.test(secretId))
        throw invalid("secret", "is not the id of a secret");
      if (await orDatabaseSilent(store.revokeApiKey(name, secretId ?? null, actor), REVOKED_OR_NOT)) return;
      throw new FencepostError("NOT_FOUND", "there is no such API key in the database, or it has no such secret");
    },
  };
}

function shown({ digest, createdAt }: KeySecret) {
  return { secretId: digest.slice(0, ID_CHARACTERS), createdAt };
}

/** Checked before the query, because PostgreSQL does not accept every string as text. */
function refuseNoName(name: unknown): asserts name is string {
  if (typeof name !== "string" || !KEY_NAME.test(name))
    throw invalid("name", "must be 1 to 64 characters of A-Z a-z 0-9 _ . -");
}

function parseTerms(codec: KeyPorts["codec"], request: unknown): KeyTerms {
  const body = asObject(request, "");
  refuseUnknownKeys(
    body,
    ["name", "scopes", "signers", "chains", "createsPerSecond", "readsPerSecond", "queueShare"],
    "",
  );
  const { name, scopes = USUAL_SCOPES } = body;
  refuseNoName(name);
  const given = parseList(scopes, "scopes", (value) => SCOPES.find((scope) => scope === value) ?? null);
  if (given === null) throw invalid("scopes", "must be a list, or absent");
  return {
    name,
    // Scopes are stored in a fixed order, so that equal terms compare as equal.
    scopes: SCOPES.filter((scope) => given.includes(scope)),
    signers: parseList(body.signers, "signers", (value, path) => parseAddress(codec, value, path)),
    chains: parseList(body.chains, "chains", (value) =>
      Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : null,
    ),
    createsPerSecond: parseQuota(body.createsPerSecond, isRate, "createsPerSecond"),
    readsPerSecond: parseQuota(body.readsPerSecond, isRate, "readsPerSecond"),
    queueShare: parseQuota(body.queueShare, isQueueShare, "queueShare"),
  };
}

function isRate(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= MOST_PER_SECOND;
}

const RATE_FORM = `must be a whole number from 1 to ${MOST_PER_SECOND}`;
const QUOTA_FORMS = {
  createsPerSecond: RATE_FORM,
  readsPerSecond: RATE_FORM,
  queueShare: "must be above 0 and at most 1, with four decimals at most",
};

function parseQuota(value: unknown, isOne: (value: unknown) => value is number, path: keyof typeof QUOTA_FORMS) {
  if (value === undefined || value === null) return null;
  if (!isOne(value)) throw invalid(path, QUOTA_FORMS[path]);
  return value;
}

/** Parses an optional list without repetitions, in a fixed order. */
export function parseList<T>(
  value: unknown,
  path: string,
  parse: (item: unknown, path: string) => T | null,
): readonly T[] | null {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value) || value.length === 0 || value.length > MOST_LIMITS) {
    throw invalid(path, `must be a list of 1 to ${MOST_LIMITS} items`);
  }
  const items = value.map((item: unknown, at) => {
    const parsed = parse(item, `${path}.${at}`);
    if (parsed === null) throw invalid(`${path}.${at}`, "is not a known value");
    return parsed;
  });
  return [...new Set(items)].sort();
}
