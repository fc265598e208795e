/**
 * Refuses combinations of settings that are valid alone but impossible together, and missing settings that a command
 * requires.
 */
import { isIP } from "node:net";
import { addressGuard } from "../../adapters/webhooks/networks.ts";
import type { ResolvedChain } from "./chains.ts";
import { parseUrl } from "./credentials.ts";
import { formatDuration } from "./parsers.ts";
import type { Resolution } from "./resolve.ts";
import { SETTINGS, type SettingKey, SIGNER_KEYS } from "./schema.ts";
import type { Mistakes, Origin, Sources } from "./sources.ts";

const STRENGTH: readonly Origin[] = ["default", "file", "chain", "environment", "flag"];

type Contradiction = readonly [key: SettingKey, isWrong: (resolution: Resolution) => boolean, mistake: string];

/** Pairs of settings: the first is required if the second is set. */
const REQUIRED_WITH = [
  ["keystorePasswordFile", "keystoreDir"],
  ["keystoreDir", "keystorePasswordFile"],
  ["remoteSignerUrl", "remoteSignerAddresses"],
  ["remoteSignerUrl", "remoteSignerCaFile"],
  ["remoteSignerCertFile", "remoteSignerKeyFile"],
  ["remoteSignerKeyFile", "remoteSignerCertFile"],
  ["remoteSignerUrl", "remoteSignerCertFile"],
] as const satisfies readonly (readonly SettingKey[])[];

const CONTRADICTIONS: readonly Contradiction[] = [
  ...REQUIRED_WITH.map(([missing, given]): Contradiction => {
    const isWrong = (all: Resolution) => isMissing(all, missing) && !isMissing(all, given);
    return [missing, isWrong, `is required with ${SETTINGS[given].variable}`];
  }),
  [
    "auth",
    (all) => all.values.auth === "none" && !isMissing(all, "apiKeys"),
    `"none" contradicts ${SETTINGS.apiKeys.variable}; set one of them`,
  ],
  [
    "apiKeys",
    (all) => all.values.auth === "keys" && isMissing(all, "apiKeys"),
    `is required with ${SETTINGS.auth.variable}=keys`,
  ],
  [
    "policyFile",
    (all) => !isMissing(all, "policyFile") && !isMissing(all, "policies"),
    `contradicts ${SETTINGS.policies.variable}; set one of them`,
  ],
  [
    "abiFile",
    (all) => !isMissing(all, "abiFile") && !isMissing(all, "abis"),
    `contradicts ${SETTINGS.abis.variable}; set one of them`,
  ],
  [
    "adminHost",
    (all) => all.values.adminPort === null && !isMissing(all, "adminHost"),
    `has no effect without ${SETTINGS.adminPort.variable}`,
  ],
  [
    "requestIdRetention",
    ({ values }) => values.retention === null && values.requestIdRetention !== null,
    `does nothing while ${SETTINGS.retention.variable} is off; set both, or neither`,
  ],
];

export function refuseImpossible(resolution: Resolution): void {
  refuseLease(resolution);
  refusePrivateHooks(resolution);
  refuseAdminPort(resolution);
  for (const [key, isWrong, mistake] of CONTRADICTIONS)
    if (isWrong(resolution)) resolution.mistakes.refuse(key, mistake);
  for (const chain of resolution.chains) refuseIdleConfirmations(chain, resolution.mistakes);
}

/**
 * Checks the lease settings. A node must survive one missed renewal, and the time at which it stops by itself (duration
 * minus skew) must be later than the next renewal.
 */
function refuseLease({ values, mistakes }: Resolution) {
  const { leaseDuration, leaseRenewInterval, clockSkewAllowance } = values;
  const lease = formatDuration(leaseDuration);
  if (leaseRenewInterval * 2 >= leaseDuration) {
    const renewal = formatDuration(leaseRenewInterval);
    mistakes.refuse("leaseRenewInterval", `${renewal} is too long for a lease of ${lease} (must be under half of it)`);
  } else if (leaseRenewInterval + clockSkewAllowance >= leaseDuration) {
    mistakes.refuse(
      "clockSkewAllowance",
      `${formatDuration(clockSkewAllowance)} leaves no time to renew a lease of ${lease} (skew and renew interval together must be shorter)`,
    );
  }
}

/** Refuses hook URLs with private IP addresses. Host names are checked when they are resolved, at every request. */
function refusePrivateHooks({ values, mistakes }: Resolution) {
  const mayConnect = addressGuard(values.hookNetworks ?? []);
  for (const key of ["stuckHook", "alertWebhookUrl", "gasOracle"] as const) {
    const host = parseUrl(values[key] ?? "")?.hostname.replace(/^\[|\]$/g, "");
    const address = host === "localhost" ? "127.0.0.1" : (host ?? "");
    if (isIP(address) === 0 || mayConnect(address)) continue;
    mistakes.refuse(key, `is a private address: to allow it, add ${address} to ${SETTINGS.hookNetworks.variable}`);
  }
}

/**
 * Checks the admin port. A node has only one advertised URL: other nodes connect to it, and in the mode `basic` callers
 * are redirected to it. So that URL must have the right one of the two ports.
 */
function refuseAdminPort({ values, mistakes }: Resolution) {
  const { adminPort, adminHost, port, host, advertiseUrl, mode } = values;
  if (adminPort === null) return;
  const isPublic = (url: string) => Number(new URL(url).port) === port && port !== adminPort;
  if (adminPort !== 0 && adminPort === port && (adminHost ?? host) === host) {
    mistakes.refuse("adminPort", `is the same port as ${SETTINGS.port.variable}; it must be another one`);
  } else if (advertiseUrl !== null && isPublic(advertiseUrl)) {
    mistakes.refuse(
      "advertiseUrl",
      `has the port of ${SETTINGS.port.variable}, but other nodes connect to ${SETTINGS.adminPort.variable}`,
    );
  }
  if (mode === "basic") {
    const sent = "redirects callers to the advertised URL, and that URL has this port";
    mistakes.refuse("adminPort", `cannot be combined with ${SETTINGS.mode.variable}=basic, which ${sent}`);
  }
}

/**
 * Refuses `confirmations` if `finality` makes it ineffective. Both are allowed if `finality` comes from a source of
 * higher precedence than `confirmations`.
 */
function refuseIdleConfirmations(chain: ResolvedChain, mistakes: Mistakes) {
  const { values, origins } = chain;
  if (values.finality === "confirmations" || origins.confirmations === "default") return;
  if (STRENGTH.indexOf(origins.confirmations) < STRENGTH.indexOf(origins.finality)) return;
  const where = origins.confirmations === "chain" ? `${chain.name}.confirmations` : SETTINGS.confirmations.variable;
  mistakes.add(where, `has no effect with finality "${values.finality}"; remove one of them`);
}

export function refuseMissing(
  { command, hasOtherSigners = false }: Pick<Sources, "command" | "hasOtherSigners">,
  resolution: Resolution,
): void {
  const { mistakes } = resolution;
  if ((command === "start" || command === "migrate") && isMissing(resolution, "databaseUrl")) {
    const hint = "postgres://user:password@host:5432/database; `fencepost dev` brings its own";
    mistakes.refuse("databaseUrl", `is required by ${command} (${hint})`);
  }
  if (command === "start" && hasNoChain(resolution)) {
    mistakes.refuse("rpcUrl", "is required by start (an http(s) URL, or `chains` in the file)");
  }
  if (command === "start" && !hasOtherSigners && isMissing(resolution, ...SIGNER_KEYS)) {
    const others = SIGNER_KEYS.slice(1).map((key) => SETTINGS[key].variable);
    mistakes.refuse("privateKeys", `a signer is required by start (set this, or ${others.join(", ")})`);
  }
  if (command === "start" || command === "dev") refuseOpenNode(command, resolution);
}

/**
 * True if none of the settings was given. This depends on the origin, not on the value: a setting with an invalid value
 * was given, and its mistake is already reported.
 */
function isMissing({ origins }: Resolution, ...keys: readonly SettingKey[]) {
  return keys.every((key) => origins[key] === "default");
}

function hasNoChain(resolution: Resolution) {
  return resolution.chains.length === 0 && isMissing(resolution, "rpcUrl");
}

/**
 * Refuses a node without API keys, because it would sign for everyone who reaches its port. Either keys are set, or
 * `auth` is "none", which is allowed on a loopback address only. Exception: `dev` needs no keys if only this machine
 * can reach it and it uses its own chain and test accounts, so that nothing of value can be spent.
 */
function refuseOpenNode(command: "start" | "dev", resolution: Resolution) {
  const { values, mistakes } = resolution;
  const reachable = (["host", "adminHost"] as const).find((key) => !isLoopback(values[key] ?? "localhost"));
  const reach = reachable && `${SETTINGS[reachable].variable} lets others reach it`;
  if (values.auth === "none" && reach !== undefined) {
    mistakes.refuse("auth", `"none" is for loopback addresses only, but ${reach}: use 127.0.0.1, or set API keys`);
  }
  if (!isMissing(resolution, "apiKeys", "auth")) return;
  const isSandbox = command === "dev" && hasNoChain(resolution) && isMissing(resolution, ...SIGNER_KEYS);
  if (isSandbox && reachable === undefined) return;
  const own = command === "dev" ? " on a chain or with keys of your own" : "";
  const why = isSandbox ? `, because ${reach}` : own;
  const open = `${SETTINGS.auth.variable}=none to run open on this machine`;
  const other = isSandbox && reachable !== undefined ? `${SETTINGS[reachable].variable}=127.0.0.1` : open;
  mistakes.refuse("apiKeys", `is required by ${command}${why} (name:secret, comma-separated; or ${other})`);
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || /^\[?::1\]?$/.test(host) || /^127(?:\.\d{1,3}){3}$/.test(host);
}
