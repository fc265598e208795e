import { createCodec } from "../../adapters/evm/codec/codec.ts";
import { parseAbis } from "../../application/queries/abis.ts";
import { FencepostError } from "../../domain/errors.ts";
import type { NamedAbi } from "../../ports/abi-store.ts";
import { type Config, ConfigurationError } from "../config/config.ts";
import { readDocument } from "./read-document.ts";

/** ABIs from the ABI file or the configuration, in the form of the body of PUT /abis. Throws if one is wrong. */
export async function loadAbis({ abis: { file, document } }: Pick<Config, "abis">): Promise<readonly NamedAbi[]> {
  const written = file === null ? document : await readDocument("FENCEPOST_ABI_FILE", file);
  if (written === null) return [];
  try {
    return parseAbis({ codec: createCodec() }, Object(written));
  } catch (error) {
    if (!(error instanceof FencepostError)) throw error;
    throw new ConfigurationError([`${file ?? "abis"}: ${error.message}`]);
  }
}
