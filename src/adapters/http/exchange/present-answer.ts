/**
 * Converts the application's records to the contract's JSON, by the schema of the response: wei as digits, addresses as
 * EIP-55, dates as ISO 8601. Members that the schema does not name are left out.
 */
import type { TSchema } from "typebox";
import type { TransactionView } from "../../../application/api.ts";
import type { OverviewView } from "../../../application/queries/overview.ts";
import type { SignerView } from "../../../application/queries/signers.ts";
import { Address as AddressSchema } from "../../../contract/schemas/scalars.ts";
import type { Address } from "../../../domain/lane.ts";
import type { Checksum } from "../../../domain/text/checksum.ts";
import type { LeaseRecord } from "../../../ports/lease-store.ts";
import { transactionView } from "./views.ts";

interface Presenting {
  readonly checksum: Checksum;
  readonly now: Date;
}

type Present = (value: unknown, how: Presenting) => unknown;
type Members = Readonly<Record<string, unknown>>;

interface AnswerSchema {
  readonly title?: string;
  readonly properties?: Readonly<Record<string, AnswerSchema>>;
  readonly additionalProperties?: unknown;
  readonly items?: AnswerSchema;
  readonly pattern?: string;
}

/**
 * For each schema title, computes members that the record lacks or has in another form. If the result is undefined, the
 * whole record is left out.
 */
const DERIVED: Readonly<Record<string, (record: never, now: Date) => object | undefined>> = {
  SignerLane: (view: SignerView, now) => ({
    ...view,
    oldestPendingAgeSeconds: view.oldestPendingAt && ageSeconds(view.oldestPendingAt, now),
    suspended: view.suspendedBy !== null,
    lease: view.owner && { token: view.token, acquiredAt: view.acquiredAt, expiresAt: view.owner.expiresAt },
  }),
  Overview: ({ oldestPending: oldest, ...view }: OverviewView) => ({
    ...view,
    oldestPending: oldest && { ...oldest, ageSeconds: ageSeconds(oldest.createdAt, view.asOf) },
  }),
  // A lane without an owner has no lease, only the last fencing token.
  LaneLease: ({ owner, acquiredAt, ...lease }: LeaseRecord) =>
    owner === null || acquiredAt === null ? undefined : { ...owner, ...lease, acquiredAt },
  NonceReservation: (record: { readonly reservation?: object }) => record.reservation ?? record,
  RevokedKey: ({ name, secret = null }: { readonly name: string; readonly secret?: string | null }) => ({
    name,
    secretId: secret,
  }),
};

const ADDRESS = (AddressSchema as AnswerSchema).pattern;
const compiled = new WeakMap<object, Present>();

export function present(schema: TSchema, record: unknown, how: Presenting): unknown {
  const { properties } = schema as AnswerSchema;
  const isList = Array.isArray(record) && properties?.items !== undefined;
  return presenterOf(schema as AnswerSchema)(isList ? { items: record } : record, how);
}

function presenterOf(schema: AnswerSchema): Present {
  const known = compiled.get(schema) ?? compile(schema);
  compiled.set(schema, known);
  return known;
}

function compile(schema: AnswerSchema): Present {
  const { title = "", properties, additionalProperties, items, pattern } = schema;
  // Transactions are converted by hand-written code, because they are read most often.
  if (title === "Transaction") return (record, { checksum }) => transactionView(record as TransactionView, checksum);
  if (items !== undefined) return listOf(presenterOf(items));
  if (properties !== undefined && additionalProperties !== true) return membersOf(title, properties);
  return pattern === ADDRESS ? address : plain;
}

function listOf(each: Present): Present {
  return (list, how) =>
    list && (list as readonly unknown[]).map((item) => each(item, how)).filter((item) => item !== undefined);
}

function membersOf(title: string, properties: NonNullable<AnswerSchema["properties"]>): Present {
  const members = Object.entries(properties).map(([name, schema]) => [name, presenterOf(schema)] as const);
  const derive = DERIVED[title];
  return (value, how) => {
    if (value === null || value === undefined) return value;
    const record = derive === undefined ? value : derive(value as never, how.now);
    if (record === undefined) return undefined;
    const shown: Record<string, unknown> = {};
    for (const [name, show] of members) {
      const member = show(memberOf(record as Members, name), how);
      if (member !== undefined) shown[name] = member;
    }
    return shown;
  };
}

/**
 * Reads a member of a record under the contract's name. Records have chain and signer in one `lane`, and the fencing
 * token as `token`.
 */
function memberOf(record: Members, name: string) {
  const own = record[name];
  if (own !== undefined) return own;
  if (name === "fencingToken") return record.token;
  if ((name !== "chainId" && name !== "signer") || record.lane === undefined) return undefined;
  return (record.lane as Members | null)?.[name] ?? null;
}

function address(value: unknown, { checksum }: Presenting) {
  return typeof value === "string" ? checksum(value as Address) : value;
}

function plain(value: unknown) {
  if (typeof value === "bigint") return value.toString();
  return value instanceof Date ? value.toISOString() : value;
}

/** Age in seconds, never negative: the database's clock and this machine's may differ. */
function ageSeconds(since: Date, now: Date) {
  return Math.max(0, Math.round((now.getTime() - since.getTime()) / 1000));
}
