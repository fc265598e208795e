import type { CreateRequest } from "../../../src/application/api.ts";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { policiesOf } from "../policies.ts";
import { CHAIN_ID, SIGNERS, TO } from "../world.ts";

/** What the policies below say about a payload. The limits of an hour and a day are judged by `SpendWatch`. */
export type Verdict = "allowed" | "approval" | "never";

/** Payload of a spender, which the policies judge. */
export interface SpentPayload {
  readonly to: Address | null;
  readonly data: Hex;
  readonly value: bigint;
  readonly gas: bigint;
  /** Price cap of one blob (EIP-4844) per unit of its gas; absent: no blob. Only a caller that signs itself has blobs. */
  readonly blobFeeCap?: bigint;
}

export interface Spend {
  readonly signer: Address;
  readonly owner: string;
  readonly payload: SpentPayload;
}

/** Unit of value: far above all values that other actors send, so that only spenders meet the bounds. */
export const UNIT = 1_000_000_000n;
/** A contract that accepts every call. */
export const TOKEN: Address = `0x${"c".repeat(40)}`;
export const TOKEN_GAS = 9_000n;
const FRIEND: Address = `0x${"d".repeat(40)}`;
const STRANGER: Address = `0x${"e".repeat(40)}`;
export const FEE = 20_000_000_000n;
const BLOB_GAS = 131_072n;
const PLAIN_GAS = 21_000n;
const CALL_GAS = 60_000n;
const TRANSFER = "a9059cbb";
const MINT = "6ecd2306";

/** The second signer has limits that nobody reaches, so everything is counted; the third allows its receivers alone. */
const [, COUNTED, STRICT] = SIGNERS as readonly [Address, Address, Address];
const NEVER_REACHED = String(10n ** 30n);

export const VALUES = { perTransaction: 100n * UNIT, perHour: 130n * UNIT, perDay: 190n * UNIT };
/** How long a request of the shop waits for its approval, by the shortest of its policies. */
export const SHOP_WAITS_MS = 2_000;
const APPROVED_ABOVE = 60n * UNIT;
const COST = PLAIN_GAS * FEE + 10n * UNIT;
export const COSTS = { perTransaction: COST, perHour: 2n * COST, perDay: 3n * COST };
const ANYBODY_MOST = 200n * UNIT;
/** Bounds of the amount of a transfer. */
const [LEAST, MOST] = [5n, 100n];

export const [SHOP, ABROAD, BUILDER, COSTLY, CAREFUL, DAILY, NIGHTLY, RICH] = [
  "shop",
  "abroad",
  "builder",
  "costly",
  "careful",
  "daily",
  "nightly",
  "rich",
] as const;
/** A key without a policy of its own. */
const ANYBODY = "anybody";
const OWNERS = [SHOP, SHOP, SHOP, ABROAD, BUILDER, COSTLY, COSTLY, CAREFUL, DAILY, NIGHTLY, RICH, ANYBODY] as const;

/** Minutes of the UTC day in which two keys may send: around midnight, and in the last hours before it. */
const DAILY_HOURS = { text: "22:00-00:01", from: 22 * 60, to: 1 };
const NIGHTLY_HOURS = { text: "12:00-23:59", from: 12 * 60, to: 23 * 60 + 59 };

/** Times of day at which simulations with these policies begin: most cross the end of an hour, a day or a period. */
const BEGINNINGS_MS = [0, 43_195_000, 50_391_000, 86_335_000, 86_394_000, 86_385_000] as const;

/** Cost of a payload's blob at its price cap. */
export function blobCostOf({ blobFeeCap = 0n }: Pick<SpentPayload, "blobFeeCap">): bigint {
  return BLOB_GAS * blobFeeCap;
}

export function beginningOf(dice: Dice): number {
  return dice.pick(BEGINNINGS_MS);
}

const wei = (limits: Readonly<Record<string, bigint>>) =>
  Object.fromEntries(Object.entries(limits).map(([name, most]) => [name, String(most)]));

function documentWith(receivers: readonly Address[]) {
  const bounds = { to: { in: [FRIEND, TO] }, amount: { min: String(LEAST), max: String(MOST) } };
  const transfer = { function: "transfer(address to,uint256 amount)", arguments: bounds };
  const mint = { function: "mint(uint8 kind)", arguments: { kind: { min: String(LEAST) } } };
  return {
    signers: {
      [COUNTED]: {
        requireApproval: { aboveValue: String(APPROVED_ABOVE), expiresAfter: "4s" },
        maxValue: { perDay: NEVER_REACHED },
        maxCost: { perHour: NEVER_REACHED },
      },
      [STRICT]: { to: [TO, TOKEN, FRIEND, `0x${"f".repeat(40)}`, "deploy"] },
    },
    keys: {
      [SHOP]: {
        chains: [CHAIN_ID],
        to: receivers,
        selectors: ["0x", "transfer(address,uint256)", "mint(uint8)"],
        calls: [transfer, mint],
        maxValue: wei(VALUES),
        requireApproval: { aboveValue: String(APPROVED_ABOVE), expiresAfter: `${SHOP_WAITS_MS}ms` },
      },
      [ABROAD]: { chains: [1] },
      [BUILDER]: { to: ["deploy"], selectors: ["deploy"] },
      [COSTLY]: { maxCost: wei(COSTS) },
      [CAREFUL]: { requireApproval: { aboveCost: String(COST), expiresAfter: "3s" } },
      [DAILY]: { hours: DAILY_HOURS.text },
      [NIGHTLY]: { hours: NIGHTLY_HOURS.text },
      [RICH]: {},
      "*": { maxValue: { perTransaction: String(ANYBODY_MOST) } },
    },
  };
}

export const SPENDING_POLICIES = policiesOf(documentWith([TO, TOKEN]));
/** The same, but the shop may send to nobody that it sends to. */
export const CLOSED_POLICIES = policiesOf(documentWith([`0x${"9".repeat(40)}`]));

/** Judges a payload by the rules above, as a reader of the document would, and not by the code that judges it. */
export function verdictOf({ signer, owner, payload }: Spend, at: Date): Verdict {
  const { to, value, gas } = payload;
  const cost = value + gas * FEE + blobCostOf(payload);
  if (signer === STRICT && to === STRANGER) return "never";
  const minute = at.getUTCHours() * 60 + at.getUTCMinutes();
  const ofKey = verdictOfKey({ owner, payload, minute, cost });
  return ofKey === "allowed" && signer === COUNTED && value > APPROVED_ABOVE ? "approval" : ofKey;
}

interface OfKey extends Pick<Spend, "owner" | "payload"> {
  readonly minute: number;
  readonly cost: bigint;
}

function verdictOfKey({ owner, payload, minute, cost }: OfKey): Verdict {
  const { to, value } = payload;
  switch (owner) {
    case SHOP:
      if (!shopMayCall(payload) || value > VALUES.perTransaction) return "never";
      return value > APPROVED_ABOVE ? "approval" : "allowed";
    case ABROAD:
      return "never";
    case BUILDER:
      return to === null ? "allowed" : "never";
    case COSTLY:
      return cost > COSTS.perTransaction ? "never" : "allowed";
    case CAREFUL:
      return cost > COST ? "approval" : "allowed";
    case DAILY:
      return minute >= DAILY_HOURS.from || minute < DAILY_HOURS.to ? "allowed" : "never";
    case NIGHTLY:
      return minute >= NIGHTLY_HOURS.from && minute < NIGHTLY_HOURS.to ? "allowed" : "never";
    case RICH:
      return "allowed";
    default:
      return value > ANYBODY_MOST ? "never" : "allowed";
  }
}

function shopMayCall({ to, data }: SpentPayload): boolean {
  if (to !== TO && to !== TOKEN) return false;
  if (data === "0x") return true;
  if (data.startsWith(`0x${MINT}`)) return [LEAST, 255n].includes(BigInt(`0x${data.slice(10)}`));
  if (!data.toLowerCase().startsWith(`0x${TRANSFER}`)) return false;
  const [receiver, amount] = [data.slice(10, 74).toLowerCase(), data.slice(74, 138)];
  if (amount.length < 64) return false;
  const isKnown = [FRIEND, TO].some((each) => receiver === each.slice(2).padStart(64, "0"));
  return isKnown && BigInt(`0x${amount}`) >= LEAST && BigInt(`0x${amount}`) <= MOST;
}

function transferOf(receiver: string, amount: bigint, selector = TRANSFER): Hex {
  return `0x${selector}${receiver.padStart(64, "0")}${amount.toString(16).padStart(64, "0")}`;
}

function mintOf(kind: bigint): Hex {
  return `0x${MINT}${kind.toString(16).padStart(64, "0")}`;
}

/** Draws a payload with a blob: below and above what a key may pay, or above every ceiling. */
export function drawBlob(dice: Dice): Spend {
  const payload = { to: TO, data: "0x", gas: PLAIN_GAS, value: UNIT, blobFeeCap: dice.pick([1n, 100_000n]) } as const;
  const owner = dice.pick([COSTLY, COSTLY, CAREFUL, RICH]);
  return { signer: dice.pick(SIGNERS), owner, payload: owner === RICH ? { ...payload, blobFeeCap: FEE } : payload };
}

/** Draws a payload that the rules allow, or that is at or beyond one of their bounds. */
export function drawSpend(dice: Dice): Spend {
  const owner = dice.pick(OWNERS);
  const signer = dice.pick(SIGNERS);
  const plain = { to: TO, data: "0x", gas: PLAIN_GAS, value: 20n * UNIT } as const;
  return { signer, owner, payload: { ...plain, ...dice.pick(payloadsOf(owner)) } };
}

function payloadsOf(owner: (typeof OWNERS)[number]): readonly Partial<SpentPayload>[] {
  const friend = FRIEND.slice(2);
  const call = { to: TOKEN, gas: CALL_GAS, value: 0n };
  const deploy = { to: null, data: "0x6001600c60003960016000f300", gas: 100_000n, value: 0n } as const;
  switch (owner) {
    case SHOP:
      return [
        ...[1n, 20n, 40n, 60n].map((units) => ({ value: units * UNIT })),
        // The chain reverts what ends with 3.
        { value: 50n * UNIT + 3n },
        { value: APPROVED_ABOVE + 1n },
        { value: VALUES.perTransaction },
        { value: VALUES.perTransaction + 1n },
        { to: STRANGER },
        deploy,
        ...[LEAST, MOST, LEAST - 1n, MOST + 1n].map((amount) => ({ ...call, data: transferOf(friend, amount) })),
        { ...call, data: transferOf(friend, 7n, TRANSFER.toUpperCase()) },
        { ...call, data: transferOf(STRANGER.slice(2), 7n) },
        // A bit beyond the type of the argument.
        { ...call, data: transferOf(`1${friend}`, 7n) },
        { ...call, data: transferOf(friend, 7n).slice(0, 100) as Hex },
        { ...call, data: transferOf(friend, 7n, "095ea7b3") },
        { ...call, data: "0xa905" },
        ...[LEAST, LEAST - 1n, 255n, 256n + LEAST].map((kind) => ({ ...call, data: mintOf(kind) })),
      ];
    case BUILDER:
      return [deploy, {}, { ...call, data: transferOf(friend, 7n) }];
    case COSTLY:
      return [{ value: 10n * UNIT }, { value: 10n * UNIT + 1n }, { value: UNIT }, { value: UNIT, gas: PLAIN_GAS + 1n }];
    case CAREFUL:
      return [{ value: 10n * UNIT }, { value: 10n * UNIT + 1n }, { value: UNIT }];
    case ANYBODY:
      return [{ value: ANYBODY_MOST }, { value: ANYBODY_MOST + 1n }, { to: STRANGER }];
    case RICH:
      return [{ value: ANYBODY_MOST + 1n }, { to: STRANGER }];
    default:
      return [{}, { value: 20n * UNIT + 3n }];
  }
}

export function requestOf({ signer, payload }: Spend, requestId: string): CreateRequest {
  const fees = { maxFeePerGas: String(FEE), maxPriorityFeePerGas: "1000000000" };
  const { to, data, value, gas } = payload;
  const content = to === null ? { bytecode: data } : { to, data };
  return { signer, requestId, payload: { ...fees, ...content, value: String(value), gas: String(gas) } };
}
