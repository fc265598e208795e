import type { Address } from "../../domain/lane.ts";
import { MOST_MEMBERS, POOL_NAME, type Pools } from "../../domain/pool.ts";
import { address } from "./credentials.ts";
import { list, type Parsed, type Parser } from "./parsers.ts";

type Said = Readonly<Record<string, string | readonly string[]>>;

const members = list(address);

/** Signers by the name of their pool: an object in a file, `payouts=0x…+0x…,refunds=0x…` in a variable. */
export const pools: Parser<Pools, Said | string> = (raw) => {
  const said = typeof raw === "string" ? written(raw) : raw;
  if (typeof said !== "object" || said === null || Array.isArray(said)) {
    return { mistake: "is not a list of pools (use payouts=0x…+0x…)" };
  }
  const found = new Map<string, readonly Address[]>();
  for (const [name, signers] of Object.entries(said)) {
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
  if (!POOL_NAME.test(name)) return { mistake: "a pool is called by letters, digits, . _ and -, 64 at most" };
  const parsed = members(signers);
  if ("mistake" in parsed || parsed.value.length <= MOST_MEMBERS) return parsed;
  return { mistake: `has more than ${MOST_MEMBERS} signers` };
}

/** Null: a pool without its signers, or one twice. */
function written(text: string): Said | null {
  const parts = text.split(",").map((part) => part.split("=").map((word) => word.trim()));
  const names = new Set(parts.map(([name]) => name));
  if (names.size < parts.length || parts.some((part) => part.length !== 2)) return null;
  return Object.fromEntries(parts.map(([name = "", signers = ""]) => [name, signers.split("+")]));
}
