import type { Address } from "../../domain/lane.ts";
import { MOST_MEMBERS, POOL_NAME, type Pools } from "../../domain/nonces/pool.ts";
import { address } from "./credentials.ts";
import { list, type Parsed, type Parser } from "./parsers.ts";

type Written = Readonly<Record<string, string | readonly string[]>>;

const members = list(address);

/** Signers by the name of their pool: an object in a file, `payouts=0x…+0x…,refunds=0x…` in a variable. */
export const pools: Parser<Pools, Written | string> = (raw) => {
  const written = typeof raw === "string" ? parseText(raw) : raw;
  if (typeof written !== "object" || written === null || Array.isArray(written)) {
    return { mistake: "is not a list of pools (use payouts=0x…+0x…)" };
  }
  const found = new Map<string, readonly Address[]>();
  for (const [name, signers] of Object.entries(written)) {
    const parsed = pool(name, signers);
    if ("mistake" in parsed)
      return { mistake: `is wrong at ${POOL_NAME.test(name) ? name : "a name"}: ${parsed.mistake}` };
    found.set(name, parsed.value);
  }
  return found.size === 0 ? { mistake: "names no pool" } : { value: found };
};

export function showPools(all: Pools): string {
  return [...all].map(([name, signers]) => `${name}=${signers.join("+")}`).join(", ");
}

function pool(name: string, signers: unknown): Parsed<readonly Address[]> {
  if (!POOL_NAME.test(name)) return { mistake: "a pool's name has up to 64 letters, digits, . _ and -" };
  const parsed = members(signers);
  if ("mistake" in parsed || parsed.value.length <= MOST_MEMBERS) return parsed;
  return { mistake: `has more than ${MOST_MEMBERS} signers` };
}

/** Parses the variable's form; null if a pool has no signers or occurs twice. */
function parseText(text: string): Written | null {
  const parts = text.split(",").map((part) => part.split("=").map((word) => word.trim()));
  const names = new Set(parts.map(([name]) => name));
  if (names.size < parts.length || parts.some((part) => part.length !== 2)) return null;
  return Object.fromEntries(parts.map(([name = "", signers = ""]) => [name, signers.split("+")]));
}
