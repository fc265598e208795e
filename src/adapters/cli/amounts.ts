import { InvalidArgumentError } from "commander";

const DECIMALS = { wei: 0, kwei: 3, mwei: 6, gwei: 9, ether: 18, eth: 18 } as const;
/** Below 2^256: what a node would refuse is refused before it is asked. */
const MOST_DIGITS = 78;

/** `1.5ether`, `20gwei`, `100` (wei) or `0x…` as a decimal number of wei. A fraction of a wei is a mistake, not rounded. */
export function wei(text: string): string {
  const [, whole, fraction = "", unit = "wei"] = /^(\d+)(?:\.(\d+))?\s*([a-z]*)$/i.exec(text) ?? [];
  if (/^0x[0-9a-f]{1,64}$/i.test(text)) return BigInt(text).toString();
  if (whole === undefined) throw mistaken("It must be an amount such as 1.5ether, 20gwei or 100 (wei).");
  const decimals = DECIMALS[(unit || "wei").toLowerCase() as keyof typeof DECIMALS];
  if (decimals === undefined) throw mistaken(`${unit} is no unit: use ether, gwei or wei.`);
  const significant = fraction.replace(/0+$/, "");
  if (significant.length > decimals) throw mistaken(tooFine(text, unit));
  const digits = BigInt(`${whole}${significant.padEnd(decimals, "0")}`).toString();
  if (digits.length > MOST_DIGITS) throw mistaken("It is more than a transaction can carry.");
  return digits;
}

function tooFine(text: string, unit: string): string {
  return unit === "" || unit === "wei"
    ? `A wei is not divided: say the unit, as in ${text}ether.`
    : "It is a fraction of a wei.";
}

function mistaken(message: string): InvalidArgumentError {
  return new InvalidArgumentError(message);
}

/** Wei for people: in ether where that is short, and as it is where it is not. */
export function inEther(amount: string | bigint): string {
  const digits = BigInt(amount).toString().padStart(19, "0");
  const fraction = digits.slice(-18).replace(/0+$/, "");
  return `${digits.slice(0, -18)}${fraction === "" ? "" : `.${fraction}`} ether`;
}

/** The same, cut to what tells balances apart. */
export function roughly(amount: string | bigint): string {
  const [whole = "", fraction = ""] = inEther(amount).replace(" ether", "").split(".");
  return fraction === "" ? whole : `${whole}.${fraction.slice(0, 4)}`;
}
