/** What a script may rely on; docs/cli.md lists the same. */
export const EXIT_CODES = {
  ok: 0,
  /** Something that may work another time or after a repair: database down, port taken, a crash. */
  failed: 1,
  /** The command line or the configuration is wrong: it will fail the same way until it is changed. */
  misused: 2,
  /** Ctrl-C, or SIGTERM, a second time before it had ended; what was in hand is picked up by the next start. */
  interrupted: 130,
  terminated: 143,
} as const;
