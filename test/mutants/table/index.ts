import type { Mutant } from "../mutant.ts";
import { POLICY } from "./policy.ts";

/** All rows, by area. */
export const TABLE: readonly Mutant[] = [...POLICY];
