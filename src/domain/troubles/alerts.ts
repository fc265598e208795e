import type { Lane } from "../lane.ts";
import type { AlertCode } from "./table.ts";

export { ALERT_CODES, type AlertCode } from "./table.ts";

/** What an alert is about: a lane, a transaction of it, a chain, an endpoint of that; none of them: it is about the node. */
export interface AlertSubject {
  readonly code: AlertCode;
  readonly lane?: Lane;
  readonly txId?: string;
  readonly chainId?: number;
  /** Its place in the configuration, from 0. */
  readonly endpoint?: number;
}

/** The same code about the same thing is the same alert: its words may have numbers in them that change each time. */
export function alertKey({ code, lane, txId, chainId = lane?.chainId, endpoint }: AlertSubject): string {
  return `${code} ${chainId ?? ""}:${lane?.signer ?? ""} ${txId ?? ""} ${endpoint ?? ""}`;
}

export type AlertSeverity = "WARNING" | "ERROR" | "CRITICAL";
