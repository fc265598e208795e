export type * from "./nonce-writes.ts";
export type * from "./outcomes.ts";
export type * from "./writes.ts";
