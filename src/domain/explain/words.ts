/** Figures as people say them. */

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

function duration(seconds: number): string {
  const [size, unit] = UNITS.find(([each]) => seconds >= each) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** How long it has been so. */
export function spanInWords(since: Date, now: Date): string {
  return duration(Math.max(0, now.getTime() - since.getTime()) / 1_000);
}

export function agoInWords(then: Date, now: Date): string {
  return `${spanInWords(then, now)} ago`;
}

export function untilInWords(then: Date, now: Date): string {
  return `in ${duration(Math.max(0, then.getTime() - now.getTime()) / 1_000)}`;
}

export function gwei(wei: bigint): string {
  return `${decimal(wei, 9)} gwei`;
}

export function ether(wei: bigint): string {
  return `${decimal(wei, 18)} ETH`;
}

function decimal(value: bigint, digits: number): string {
  const text = value.toString().padStart(digits + 1, "0");
  const fraction = text.slice(-digits).replace(/0+$/, "");
  return fraction === "" ? text.slice(0, -digits) : `${text.slice(0, -digits)}.${fraction}`;
}

/** With a capital at its beginning and a full stop at its end. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
