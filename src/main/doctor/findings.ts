import type { Finding } from "../../adapters/cli/diagnose.ts";

export const fine = (code: string, text: string): Finding => ({ sign: "ok", code, text, fix: null });
export const warning = (code: string, text: string, fix: string): Finding => ({ sign: "warning", code, text, fix });
export const mistake = (code: string, text: string, fix: string): Finding => ({ sign: "mistake", code, text, fix });

/** `1 node`, `2 nodes`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;
