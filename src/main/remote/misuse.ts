import { CommandFailed, EXIT_CODES } from "../../adapters/cli/failure.ts";

/** A failure that the command's user can correct. */
export function misuse(line: string, options?: ErrorOptions): CommandFailed {
  return new CommandFailed([line], EXIT_CODES.misused, options);
}
