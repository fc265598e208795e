// @ts-check
import { keccakLoaded } from "../../threads/keccak.js";
import { serve } from "../../threads/serve.js";
import { proveBlock } from "./prove-block.js";

// Thread that proves blocks. Proving a block computes thousands of hashes, which would block the main thread's event
// loop.
await keccakLoaded;
serve(proveBlock);
