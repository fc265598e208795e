import { InvalidArgumentError } from "commander";

const DECIMALS = { wei: 0, kwei: 3, mwei: 6, gwei: 9, ether: 18, eth: 18 } as const;
/** Number of decimal digits of 2^256. A longer amount is refused here, because a node would refuse it. */
const MOST_DIGITS = 78;

/**
 * Parses `1.5ether`, `20gwei`, `100` (wei) or `0x…` to a decimal number of wei. A fraction of a wei is refused, not
 * rounded.
 */
export function wei(text: string): string {
  const [, whole, fraction = "", unit = "wei"] = /^(\d+)(?:\.(\d+))?\s*([a-z]*)$/i.exec(text) ?? [];
  if (/^0x[0-9a-f]{1,64}$/i.test(text)) return BigInt(text).toString();
  if (whole === undefined)
    throw new InvalidArgumentError("The value must be an amount such as 1.5ether, 20gwei or 100 (wei).");
  const decimals = DECIMALS[(unit || "wei").toLowerCase() as keyof typeof DECIMALS];
  if (decimals === undefined) throw new InvalidArgumentError(`${unit} is not a known unit: use ether, gwei or wei.`);
  const significant = fraction.replace(/0+$/, "");
  if (significant.length > decimals) throw new InvalidArgumentError(tooFine(text, unit));
  const digits = BigInt(`${whole}${significant.padEnd(decimals, "0")}`).toString();
  if (digits.length > MOST_DIGITS) throw new InvalidArgumentError("The amount is too large for a transaction.");
  return digits;
}

function tooFine(text: string, unit: string) {
  return unit === "" || unit === "wei"
    ? `A wei is indivisible: name the unit, as in ${text}ether.`
    : "It is a fraction of a wei.";
}

/** Formats an amount in wei as ether, for people. */
export function inEther(amount: string | bigint): string {
  if (BigInt(amount) < 0n) return `-${inEther(-BigInt(amount))}`;
  const digits = BigInt(amount).toString().padStart(19, "0");
  const fraction = digits.slice(-18).replace(/0+$/, "");
  return `${digits.slice(0, -18)}${fraction === "" ? "" : `.${fraction}`} ether`;
}

/** Formats an amount in wei as ether with four decimals, for balances. */
export function roughly(amount: string | bigint): string {
  const [whole = "", fraction = ""] = inEther(amount).replace(" ether", "").split(".");
  return fraction === "" ? whole : `${whole}.${fraction.slice(0, 4)}`;
}
