// @ts-check
import { serve } from "../../threads/serve.js";
import { proveBlock } from "./prove-block.js";

// The proving thread: a block takes thousands of hashes, which would hold up everything else on the event loop.
serve(proveBlock);
